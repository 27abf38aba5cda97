import { describe, expect, it } from "vitest";
import type { Memory } from "../shared/calls";
import { describeAudience, getAskerName } from "./descriptions";

const MEMORY: Memory = {
  id: "m_1",
  text: "The club meets on Monday.",
  author_name: "Ada",
  is_author: false,
  created_at: "2026-11-15T08:12:00Z",
  shared: true,
  other_names: ["Ada"],
  other_count: 1,
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

it("names the person who asked for it, as far as that is known", () => {
  expect(getAskerName(MEMORY)).toBe("Ada");
  expect(getAskerName({ ...MEMORY, is_author: true })).toBe("You");
  expect(getAskerName({ ...MEMORY, author_name: null })).toBe("someone");
});
