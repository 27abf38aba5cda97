import { describe, expect, it } from "vitest";
import { splitBlocks } from "./blocks";
import { parseBlocks, renderHtml } from "./html";
import { splitLinks, splitUserText } from "./messageParts";

const fill = (piece: string, length: number) => piece.repeat(Math.ceil(length / piece.length)).slice(0, length);

// Each took the parser between seconds and minutes, or overflowed the stack.
const COSTLY: Record<string, (length: number) => string> = {
  "an open formula and spaces": (length) => "$$" + fill(" ", length),
  "an open formula in brackets and spaces": (length) => "\\[" + fill(" ", length),
  "an open formula and lines": (length) => "$$a" + fill("\n", length),
  "open formulas": (length) => fill("\n\\[", length),
  "dollar signs": (length) => fill("$a", length),
  "nested quotes": (length) => fill(">", length),
  "nested lists in one line": (length) => fill("- ", length) + "a",
  "nested numbered lists": (length) => fill("1. ", length) + "a",
  "nested quotes and lists": (length) => fill("> - ", length) + "a",
  "open emphasis": (length) => fill("*a_", length),
  "nested emphasis": (length) => fill("**a *b ", length / 2) + fill("b* a**", length / 2),
  "underscores in a word": (length) => "a" + fill("_", length),
  "open links": (length) => fill("[", length),
  "links in links": (length) => fill("[", length / 2) + fill("](b)", length / 2),
  "images": (length) => fill("![", length),
  "backticks": (length) => fill("`a", length),
  "HTML": (length) => fill("<a ", length),
  "comments": (length) => fill("<!--", length),
  "a long address": (length) => "http://a.b/" + fill(".", length),
  "addresses": (length) => fill("http://a.b ", length),
  "mail addresses": (length) => fill("a@", length),
  "a table": (length) => "a|b\n-|-\n" + fill("|", length),
  "tables": (length) => fill("|a|b|\n|-|-|\n", length),
  "footnotes": (length) => fill("[^1]", length),
  "footnote definitions": (length) => fill("[^1]: a\n", length),
  "footnotes that are never closed": (length) => fill("\n[^", length),
  "a footnote of empty lines": (length) => "[^1]: a" + fill("\n", length) + "b",
  "details": (length) => fill("<details>\n", length),
  "nested details": (length) => fill("<details>\n", length / 2) + fill("</details>\n", length / 2),
  "details beside details": (length) => fill("<details>a</details>\n\n", length),
  "details in open code": (length) => "<details>" + fill("\n```\n<details>", length),
  "details with an open summary": (length) => fill("<details><summary>", length),
  "open tags": (length) => fill("<sub>", length),
  "nested tags": (length) => fill("<sub><sup><kbd>", length / 2) + fill("</kbd></sup></sub>", length / 2),
  "definitions": (length) => fill("[a]: b\n", length),
  "list items": (length) => fill("- a\n", length),
  "marks": (length) => fill("!", length),
  "one long word": (length) => fill("a", length),
};

// What this process itself computes, because other processes may keep it waiting.
const measureCpuSeconds = (run: () => void) => {
  const start = process.cpuUsage();
  run();
  return process.cpuUsage(start).user / 1e6;
};
const HANG_MS = 300_000;

describe("a costly text", () => {
  for (const [name, make] of Object.entries(COSTLY)) {
    it(`is parsed in bounded time or not at all: ${name}`, { timeout: HANG_MS }, () => {
      const seconds = measureCpuSeconds(() => {
        for (const length of [10_000, 40_000]) parseBlocks(make(length));
      });
      expect(seconds).toBeLessThan(15);
    });
  }

  it("is shown as plain text, and stays so while it grows", () => {
    const text = fill(">", 3000);
    const before = splitBlocks(text);
    expect(before).toEqual({ text, tokens: [], definitions: 0, isPlain: true });
    const after = splitBlocks(`${text}\n\nand *more*`, before);
    expect(after).toEqual({ text: `${text}\n\nand *more*`, tokens: [], definitions: 0, isPlain: true });
    expect(splitBlocks("*short*", after).isPlain).toBe(false);
  });

  it("becomes plain text when the costly part arrives", () => {
    const before = splitBlocks("# Title\n\nA paragraph.\n\n");
    expect(before.isPlain).toBe(false);
    expect(splitBlocks(before.text + fill("> ", 6000), before).isPlain).toBe(true);
  });

  it("in a person's message is shown as it was typed", () => {
    const text = `${fill(">", 3000)}\n\nmermaid`;
    expect(splitUserText(text)).toEqual([{ kind: "text", text }]);
  });
});

// Nothing bounds the time for these texts but the functions themselves.
const COSTLY_MESSAGES: Record<string, string> = {
  "fences": "```a\n",
  "empty blocks of code": "```\n",
  "fences of all kinds": "```\n~~~~\n`````\n",
  "fences in one line": "```",
  "open addresses": "http://",
  "addresses": "http://a.b/) ",
  "brackets after an address": "http://a.b/" + ")".repeat(50),
  "empty lines": "\n",
  "spaces": "  \n",
};

describe("a person's message", () => {
  for (const [name, piece] of Object.entries(COSTLY_MESSAGES)) {
    it(`is split in linear time: ${name}`, { timeout: HANG_MS }, () => {
      const text = fill(piece, 300_000); // with quadratic time, minutes
      const seconds = measureCpuSeconds(() => {
        const parts = splitUserText(text);
        for (const part of parts) splitLinks(part.text);
        splitLinks(text);
      });
      expect(seconds).toBeLessThan(10);
    });
  }
});

describe("ordinary texts", () => {
  const html = (text: string) => renderHtml(parseBlocks(text) ?? []);

  it("may nest as deeply as people nest", () => {
    expect(parseBlocks(`${fill("> ", 20)}a`)).not.toBeNull();
    expect(parseBlocks("- a\n  - b\n    - c\n      - d")).not.toBeNull();
  });

  it("may be long", () => {
    const paragraph = `A **bold** word, a [link](https://example.org), \`code\` and $x^2$.\n\n`;
    expect(splitBlocks(fill(paragraph, 100_000)).isPlain).toBe(false);
  });

  it("may contain formulas with spaces, line breaks and escaped dollar signs", () => {
    expect(html("$$  a + b\n  $$")).toContain('<span class="math math-display">a + b</span>');
    expect(html("\\[\n x \\]")).toContain('<span class="math math-display">x</span>');
    expect(html("so \\(a\\) is")).toContain('<span class="math">a</span>');
    expect(html("so $a \\$ b$ is")).toContain('<span class="math">a \\$ b</span>');
    expect(html("$a $ and $ b$, $a$5")).not.toContain("math");
  });

  it("link addresses of ordinary length", () => {
    expect(html("see https://example.org/a?b=c.")).toContain('href="https://example.org/a?b=c"');
    expect(html(`${fill("word ", 3000)}https://example.org`)).toContain("href");
  });
});
