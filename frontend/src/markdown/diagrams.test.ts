import { describe, expect, it } from "vitest";
import { readDiagram } from "./diagrams";
import { parseBlocks } from "./html";

const first = (text: string) => readDiagram(parseBlocks(text)![0]!); // eslint-disable-line @typescript-eslint/no-non-null-assertion

describe("a diagram", () => {
  it("is a fenced Mermaid block", () => {
    expect(first("```mermaid\ngraph TD\n  A --> B\n```")).toBe("graph TD\n  A --> B");
    expect(first("~~~~ Mermaid\npie\n~~~~\n\nmore")).toBe("pie");
    expect(first("```python\nmermaid\n```")).toBeNull();
    expect(first("    mermaid")).toBeNull();
    expect(first("mermaid")).toBeNull();
  });

  it("is complete only once its fence is closed", () => {
    const block = "````mermaid\ngraph TD\n```\n  A --> B\n````";
    for (let end = 1; end < block.length; end += 1) expect(first(block.slice(0, end)), block.slice(0, end)).toBeNull();
    expect(first(block)).toContain("A --> B");
  });
});
