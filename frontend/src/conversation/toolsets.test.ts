import { describe, expect, it } from "vitest";
import { buildToolsetRevert, getToolsetName } from "./toolsets";

describe("toolsets", () => {
  it("have readable names", () => {
    expect(["memory", "mcp:files", "other"].map(getToolsetName)).toEqual(["Memory", "files", "other"]);
  });

  it("are switched back to the previous state, and no others are touched", () => {
    expect(buildToolsetRevert(["memory"], [])).toEqual({ memory: true });
    expect(buildToolsetRevert(["a", "b"], ["b", "c"])).toEqual({ a: true, c: false });
    expect(buildToolsetRevert(["a"], ["a"])).toEqual({});
  });
});
