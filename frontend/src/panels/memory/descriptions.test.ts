import { describe, expect, it } from "vitest";
import type { Memory } from "../shared/calls";
import { describeAudience, describeOrigin } from "./descriptions";

const MEMORY: Memory = {
  id: "m_1",
  text: "The club meets on Monday.",
  author_name: "Ada",
  is_author: false,
  created_at: "2026-11-15T08:12:00Z",
  shared: true,
  other_names: ["Ada"],
  other_count: 1,
  origin: "person",
  session_id: null,
};

describe("the audience of a memory", () => {
  it.each([
    [{ shared: false, other_names: [], other_count: 0 }, "only you"],
    [{}, "shared with Ada"],
    [{ other_names: ["Ada", "Bob", ""], other_count: 3 }, "shared with Ada, Bob, and someone"],
    [{ other_names: ["Ada", "Bob"], other_count: 7 }, "shared with Ada, Bob, and 5 others"],
    [{ other_names: ["Ada", "Bob"], other_count: 3 }, "shared with Ada, Bob, and 1 other"],
    [{ other_names: [], other_count: 0 }, "shared with the group"],
  ])("%o", (fields, description) => {
    expect(describeAudience({ ...MEMORY, ...fields })).toBe(description);
  });
});

it.each([
  [{}, "Ada"],
  [{ is_author: true }, "You"],
  [{ author_name: null }, "someone"],
  [{ origin: "agent" }, "Saved by the agent for Ada"],
  [{ origin: "agent", is_author: true }, "Saved by the agent"],
  [{ origin: "learned" }, "Learned by the agent from Ada"],
  [{ origin: "learned", is_author: true }, "Learned by the agent"],
] as const)("says where a memory is from: %o", (fields, description) => {
  expect(describeOrigin({ ...MEMORY, ...fields })).toBe(description);
});
