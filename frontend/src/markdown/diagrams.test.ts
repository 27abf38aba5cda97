import { describe, expect, it } from "vitest";
import { diagramIn, withDiagrams } from "./diagrams";
import { lexed } from "./html";

const first = (text: string) => diagramIn(lexed(text)[0]!); // eslint-disable-line @typescript-eslint/no-non-null-assertion

describe("a diagram", () => {
  it("is a fenced block of Mermaid", () => {
    expect(first("```mermaid\ngraph TD\n  A --> B\n```")).toBe("graph TD\n  A --> B");
    expect(first("~~~~ Mermaid\npie\n~~~~\n\nmore")).toBe("pie");
    expect(first("```python\nmermaid\n```")).toBeNull();
    expect(first("    mermaid")).toBeNull();
    expect(first("mermaid")).toBeNull();
  });

  it("is one when its fence is closed, and not before", () => {
    const whole = "````mermaid\ngraph TD\n```\n  A --> B\n````";
    for (let end = 1; end < whole.length; end += 1) expect(first(whole.slice(0, end)), whole.slice(0, end)).toBeNull();
    expect(first(whole)).toContain("A --> B");
  });

  it("in what a person wrote stands between their words, which stay as they are", () => {
    const parts = withDiagrams("  Look *here*:\n\n```mermaid\npie\n```\n\n<b>and</b>\n\n- there\n");
    expect(parts).toEqual([
      { isDiagram: false, text: "  Look *here*:" },
      { isDiagram: true, text: "pie" },
      { isDiagram: false, text: "<b>and</b>\n\n- there" },
    ]);
  });

  it("is not made of words about one", () => {
    const text = "I like mermaid\n\n\n  diagrams:\n\n```mermaid\npie\n\n";
    expect(withDiagrams(text)).toEqual([{ isDiagram: false, text }]);
  });
});
