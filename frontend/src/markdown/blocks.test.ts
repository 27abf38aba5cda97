import { describe, expect, it } from "vitest";
import { getChildren, groupBlocks, isComponent, splitBlocks, type Blocks } from "./blocks";
import { parseBlocks, renderHtml } from "./html";

const TEXT = `# Title

A paragraph with **bold** and $x^2$ words.

- one
- two

  with more

1. first
2. second

\`\`\`python
def f():

    return 1
\`\`\`

| a | b |
|---|--:|
| 1 | 2 |

> quoted
> twice

$$
\\int_0^1 x
$$

<details>
<summary>More</summary>

- [x] done
  - [ ] not yet

</details>

A note[^1] and H<sub>2</sub>O.

[^1]: The note
goes on.

    And on.

[^b]: Another.

The end.`;

const listBlocks = ({ tokens }: Blocks) => tokens.map((token) => [token.type, token.raw]);
const parse = (text: string) => parseBlocks(text) ?? [];
const html = (text: string) => renderHtml(parse(text));

describe("blocks", () => {
  it("of a text that grew character by character are those of the whole text", () => {
    for (const step of [1, 7, 40]) {
      let blocks = splitBlocks("");
      for (let end = 0; end < TEXT.length; end += step) blocks = splitBlocks(TEXT.slice(0, end), blocks);
      blocks = splitBlocks(TEXT, blocks);
      expect(listBlocks(blocks)).toEqual(listBlocks(splitBlocks(TEXT)));
    }
  });

  it("that are complete stay the same objects while the text grows", () => {
    const before = splitBlocks(TEXT.slice(0, 200));
    const after = splitBlocks(TEXT, before);
    expect(after.tokens[0]).toBe(before.tokens[0]);
  });

  it("resolve reference links, even when the definition comes at the very end", () => {
    const text = "See [the page][1].\n\nMore.\n\nMuch more.\n\n[1]: https://example.org\n\nThe end, see [1].";
    let blocks = splitBlocks("");
    for (let end = 0; end <= text.length; end += 1) blocks = splitBlocks(text.slice(0, end), blocks);
    expect(blocks.definitions).toBe(1);
    expect(renderHtml(blocks.tokens)).toBe(html(text));
    expect(renderHtml(blocks.tokens).match(/href/g)).toHaveLength(2);
  });

  it("are split again when the text is a different one", () => {
    const before = splitBlocks("one\n\ntwo\n\nthree");
    expect(splitBlocks("ten", before).tokens).toHaveLength(1);
  });
});

describe("HTML", () => {
  it("inside Markdown is shown as text and has no effect", () => {
    const output = html('<img src=x onerror=alert(1)> <script>alert(1)</script>\n\n<div style="color:red">x</div>');
    expect(output).not.toMatch(/<(img|script|div style)/);
    expect(output).toContain("onerror");
  });

  it("links only to safe addresses", () => {
    expect(html("[a](https://example.org)")).toContain('rel="noopener noreferrer"');
    expect(html("[a](javascript:alert(1))")).not.toContain("<a");
    expect(html("[a](data:text/html,x)")).not.toContain("<a");
  });

  it("loads no image from another site, but offers to", () => {
    const output = html("![a cat](https://example.org/cat.png)");
    expect(output).not.toContain("<img");
    expect(output).toMatch(/<button[^>]*><b>Load image<\/b><span>a cat<\/span><small>example.org<\/small><\/button>/);
    expect(html("[![badge](https://example.org/b.svg)](https://example.org)")).toMatch(/<a [^>]*>badge<\/a>/);
    expect(html("![x](http://example.org/x.png)")).toMatch(/<a [^>]*>x<\/a>/);
    expect(html("![x](javascript:alert(1))")).not.toMatch(/<(a|img|button)/);
    expect(html("![x](data:image/png;base64,AAAA)")).toContain('<img src="data:image/png;base64,AAAA"');
  });

  it("tells formulas from prices", () => {
    expect(html("It is $5 and $10 today.")).not.toContain("math");
    expect(html("so $$a$$ is")).toContain('<span class="math">a</span>');
    expect(html("so $a+b$ is")).toContain('<span class="math">a+b</span>');
    expect(html("$$\nx < y\n$$")).toContain("math-display");
  });
});

describe("code inside lists and quotes", () => {
  const list = "1. do this:\n   ```sh\n   ls\n   ```\n   and look\n2. [x] then\n\n> as said\n>\n> - first\n>   ~~~\n>   x\n>   ~~~\n\n- no\n- code";
  const [numbered, quote, plain] = parse(list).filter((token) => token.type !== "space");

  it("is found at any depth", () => {
    expect([numbered, quote, plain].map((token) => token !== undefined && isComponent(token))).toEqual([true, true, false]);
  });

  it("is a group of its own between text that stays together", () => {
    if (numbered === undefined) throw new Error("there is a list");
    const groups = getChildren(numbered).map((tokens) => groupBlocks(tokens).map((group) => group.map((token) => token.type)));
    expect(groups).toEqual([[["text"], ["code"], ["text"]], [["checkbox", "text"]]]);
  });
});
