import { describe, expect, it } from "vitest";
import { describeAmounts, formatBudgetFacts, getBudgetLevel, getUsedPercent } from "./budgets";
import { describeFailure, describeNotice } from "./errors";

const UNUSED = { used_usd: "0", held_usd: "0", limit_usd: null, used_tokens: 0, held_tokens: 0, limit_tokens: null, unpriced_calls: 0 };
const FACTS = { scope: "person", subject: "Ada", period: "day", resets_at: "2026-11-17T00:00:00Z", timezone: "UTC" };

describe("a budget", () => {
  it("is described by what is used and limited", () => {
    expect(describeAmounts({ ...UNUSED, used_usd: "1.2", limit_usd: "5", used_tokens: 12_000 })).toEqual(["$1.20 of $5.00", "12K tokens"]);
    expect(describeAmounts({ ...UNUSED, limit_tokens: 200_000, held_tokens: 9000 })).toEqual(["0 of 200K tokens", "9K tokens held for running answers"]);
    expect(describeAmounts({ ...UNUSED, used_tokens: 5, unpriced_calls: 1 })).toEqual(["5 tokens", "plus 1 call with an unknown price"]);
    expect(describeAmounts(UNUSED)).toEqual(["Nothing used"]);
  });

  it("is used without what running answers hold", () => {
    expect(getUsedPercent(UNUSED)).toBeNull();
    expect(getUsedPercent({ ...UNUSED, used_usd: "0.21", held_usd: "0.39", limit_usd: "0.6" })).toBe(35);
    expect(getUsedPercent({ ...UNUSED, used_usd: "1", limit_usd: "5", used_tokens: 90, limit_tokens: 100 })).toBe(90);
    expect(getUsedPercent({ ...UNUSED, limit_tokens: 0 })).toBe(100);
  });

  it("has a level", () => {
    expect([0, 79, 80, 99, 100, 140].map(getBudgetLevel)).toEqual(["ok", "ok", "warning", "warning", "used-up", "used-up"]);
  });

  it("is named in errors with amounts, where the reader may know them", () => {
    const failure = { ...FACTS, code: "budget_exceeded", unit: "usd", used: 5_000_000_000, limit: 5_000_000_000 };
    expect(describeFailure(failure)).toMatch(/^Your daily budget is used up: \$5\.00 of \$5\.00\. It resets Nov 17, .*\(UTC\)\.$/);
    const shared = { ...FACTS, code: "budget_exceeded", scope: "all", period: "month", unit: "usd" };
    expect(describeFailure(shared)).toMatch(/^The monthly budget of everybody together is used up\. It resets/);
  });

  it("says what is left when that is too little", () => {
    const failure = { ...FACTS, code: "budget_exceeded", unit: "tokens", used: 1500, limit: 2000 };
    expect(describeFailure(failure)).toContain("only 500 tokens left, too little for this answer");
    expect(formatBudgetFacts({ unit: "tokens", used: 2000, limit: 2000 })).toEqual({ used: "2,000 tokens", limit: "2,000 tokens" });
  });

  it("is named in warnings", () => {
    const facts = { ...FACTS, unit: "tokens", used: 1600, limit: 2000, percent: 80 };
    const text = describeNotice({ text: "", code: "budget_nearly_used", facts });
    expect(text).toMatch(/^Your daily budget is 80% used \(1,600 tokens of 2,000 tokens\)\. It resets Nov 17/);
  });
});
