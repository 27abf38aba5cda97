import { describe, expect, it } from "vitest";
import { session } from "../lib/samples";
import { fillOf } from "./models";

const models = {
  default: "a",
  description: "",
  models: [
    { name: "a", context_window: 1000 },
    { name: "b", context_window: null },
    { name: "c", context_window: 4000 },
  ],
};

describe("how full a conversation is", () => {
  it("goes by the model that answers in it", () => {
    expect(fillOf(session("s", { context_tokens: 500 }), models)).toMatchObject({ share: 0.5, window: 1000 });
    expect(fillOf(session("s", { context_tokens: 500, chosen_model: "c" }), models)?.share).toBe(0.125);
  });

  it("is never more than full", () => {
    expect(fillOf(session("s", { context_tokens: 5000 }), models)?.share).toBe(1);
  });

  it("is not known without a count, a model or its size", () => {
    expect(fillOf(session("s"), models)).toBeNull();
    expect(fillOf(session("s", { context_tokens: 5 }), undefined)).toBeNull();
    expect(fillOf(session("s", { context_tokens: 5, chosen_model: "b" }), models)).toBeNull();
    expect(fillOf(session("s", { context_tokens: 5, chosen_model: "gone" }), models)).toBeNull();
  });
});
