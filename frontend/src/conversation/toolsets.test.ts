import { describe, expect, it } from "vitest";
import { switchesBack, toolsetName } from "./toolsets";

describe("sets of tools", () => {
  it("are called as people know them", () => {
    expect(["memory", "mcp:files", "other"].map(toolsetName)).toEqual(["Memory", "files", "other"]);
  });

  it("are switched back to what was off before, and nothing else is touched", () => {
    expect(switchesBack(["memory"], [])).toEqual({ memory: true });
    expect(switchesBack(["a", "b"], ["b", "c"])).toEqual({ a: true, c: false });
    expect(switchesBack(["a"], ["a"])).toEqual({});
  });
});
