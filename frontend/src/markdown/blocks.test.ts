import { describe, expect, it } from "vitest";
import { blocksOf, groupsOf, holdsCode, insidesOf, type Blocks } from "./blocks";
import { htmlOf, lexed } from "./html";

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

The end.`;

const shapes = ({ tokens }: Blocks) => tokens.map((token) => [token.type, token.raw]);
const html = (text: string) => htmlOf(...lexed(text));

describe("blocks", () => {
  it("of a text that grew sign by sign are those of the whole text", () => {
    for (const step of [1, 7, 40]) {
      let blocks = blocksOf("");
      for (let end = 0; end < TEXT.length; end += step) blocks = blocksOf(TEXT.slice(0, end), blocks);
      blocks = blocksOf(TEXT, blocks);
      expect(shapes(blocks)).toEqual(shapes(blocksOf(TEXT)));
    }
  });

  it("that are finished stay the same objects while the text grows", () => {
    const before = blocksOf(TEXT.slice(0, 200));
    const after = blocksOf(TEXT, before);
    expect(after.tokens[0]).toBe(before.tokens[0]);
  });

  it("know what their links stand for, also when that is told at the very end", () => {
    const text = "See [the page][1].\n\nMore.\n\nMuch more.\n\n[1]: https://example.org\n\nThe end, see [1].";
    let blocks = blocksOf("");
    for (let end = 0; end <= text.length; end += 1) blocks = blocksOf(text.slice(0, end), blocks);
    expect(blocks.definitions).toBe(1);
    expect(htmlOf(...blocks.tokens)).toBe(html(text));
    expect(htmlOf(...blocks.tokens).match(/href/g)).toHaveLength(2);
  });

  it("begin anew when the text is another", () => {
    const before = blocksOf("one\n\ntwo\n\nthree");
    expect(blocksOf("ten", before).tokens).toHaveLength(1);
  });
});

describe("HTML", () => {
  it("inside Markdown is shown and takes no effect", () => {
    const made = html('<img src=x onerror=alert(1)> <script>alert(1)</script>\n\n<div style="color:red">x</div>');
    expect(made).not.toMatch(/<(img|script|div style)/);
    expect(made).toContain("onerror");
  });

  it("links only to what can be followed safely", () => {
    expect(html("[a](https://example.org)")).toContain('rel="noopener noreferrer"');
    expect(html("[a](javascript:alert(1))")).not.toContain("<a");
    expect(html("[a](data:text/html,x)")).not.toContain("<a");
  });

  it("fetches no image from elsewhere", () => {
    const made = html("![a cat](https://example.org/cat.png)");
    expect(made).not.toContain("<img");
    expect(made).toContain("a cat");
  });

  it("knows formulas from prices", () => {
    expect(html("It is $5 and $10 today.")).not.toContain("math");
    expect(html("so $$a$$ is")).toContain('<span class="math">a</span>');
    expect(html("so $a+b$ is")).toContain('<span class="math">a+b</span>');
    expect(html("$$\nx < y\n$$")).toContain("math-display");
  });
});

describe("code inside of something", () => {
  const list = "1. do this:\n   ```sh\n   ls\n   ```\n   and look\n2. [x] then\n\n> as said\n>\n> - first\n>   ~~~\n>   x\n>   ~~~\n\n- no\n- code";
  const [numbered, quote, plain] = lexed(list).filter((token) => token.type !== "space");

  it("is found however deep it stands", () => {
    expect([numbered, quote, plain].map((token) => token !== undefined && holdsCode(token))).toEqual([true, true, false]);
  });

  it("stands alone between words that stay together", () => {
    if (numbered === undefined) throw new Error("there is a list");
    const groups = insidesOf(numbered).map((tokens) => groupsOf(tokens).map((group) => group.map((token) => token.type)));
    expect(groups).toEqual([[["text"], ["code"], ["text"]], [["checkbox", "text"]]]);
  });
});
