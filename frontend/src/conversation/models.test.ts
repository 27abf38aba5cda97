import { describe, expect, it } from "vitest";
import { session } from "../testing/samples";
import { getContextFill } from "./models";

const models = {
  default: "a",
  compaction_percent: 85,
  description: "",
  are_more_offered: false,
  models: [
    { name: "a", context_window: 1000 },
    { name: "b", context_window: null },
    { name: "c", context_window: 4000 },
  ],
};

describe("the fill of a context", () => {
  it("depends on the model of the conversation", () => {
    expect(getContextFill(session("s", { context_tokens: 500 }), models)).toMatchObject({ share: 0.5, window: 1000 });
    expect(getContextFill(session("s", { context_tokens: 500, chosen_model: "c" }), models)?.share).toBe(0.125);
  });

  it("is never above 1", () => {
    expect(getContextFill(session("s", { context_tokens: 5000 }), models)?.share).toBe(1);
  });

  it("is nearly full when the server will compact it, which a setting decides", () => {
    const isNearlyFull = (tokens: number, compaction_percent: number | null) =>
      getContextFill(session("s", { context_tokens: tokens }), { ...models, compaction_percent })?.isNearlyFull;
    expect([isNearlyFull(849, 85), isNearlyFull(850, 85), isNearlyFull(500, 50), isNearlyFull(1000, null)]).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it("is unknown without a count, a model or its size", () => {
    expect(getContextFill(session("s"), models)).toBeNull();
    expect(getContextFill(session("s", { context_tokens: 5 }), undefined)).toBeNull();
    expect(getContextFill(session("s", { context_tokens: 5, chosen_model: "b" }), models)).toBeNull();
    expect(getContextFill(session("s", { context_tokens: 5, chosen_model: "unknown" }), models)).toBeNull();
  });
});
