import { describe, expect, it } from "vitest";
import { findChanges, parseDollars, parseTokens } from "./amounts";

describe("a typed limit", () => {
  it("is read as dollars without rounding", () => {
    expect(["5", " $0.25 ", "0,1", "0.000001", ""].map(parseDollars)).toEqual(["5", "0.25", "0.1", "0.000001", null]);
    expect(["x", "-1", "1e3", "0.0000001", "2000000", "1.2.3"].map(parseDollars)).toEqual(Array(6).fill(undefined));
  });

  it("is read as tokens", () => {
    expect(["200000", "200k", "1.5M", "0,5k", "0", ""].map(parseTokens)).toEqual([200_000, 200_000, 1_500_000, 500, 0, null]);
    expect(["x", "-1", "0.5", "1.5", "9999999999999", "5g"].map(parseTokens)).toEqual(Array(6).fill(undefined));
  });

  it("changes only what was changed", () => {
    const current = { limit_usd: "2.5", limit_tokens: null };
    expect(findChanges({ dollars: "2.50", tokens: "" }, current)).toEqual({});
    expect(findChanges({ dollars: "3", tokens: "" }, current)).toEqual({ usd: "3" });
    expect(findChanges({ dollars: "", tokens: "1k" }, current)).toEqual({ usd: null, tokens: 1000 });
    expect(findChanges({ dollars: "much", tokens: "" }, current)).toBeUndefined();
  });
});
