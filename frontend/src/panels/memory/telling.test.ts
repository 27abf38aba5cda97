import { describe, expect, it } from "vitest";
import type { Memory } from "../calls";
import { askerOf, circleOf } from "./telling";

const MEMORY: Memory = {
  id: "m_1",
  text: "The club meets on Monday.",
  asked_by: "Ada",
  asked_by_me: false,
  created_at: "2026-11-15T08:12:00Z",
  shared: true,
  others: ["Ada"],
  other_count: 1,
};

describe("among whom something is known", () => {
  it.each([
    [{ shared: false, others: [], other_count: 0 }, "known to you alone"],
    [{}, "also known to Ada"],
    [{ others: ["Ada", "Bob", ""], other_count: 3 }, "also known to Ada, Bob, and somebody"],
    [{ others: ["Ada", "Bob"], other_count: 7 }, "also known to Ada, Bob, and 5 others"],
    [{ others: ["Ada", "Bob"], other_count: 3 }, "also known to Ada, Bob, and 1 other"],
    [{ others: [], other_count: 0 }, "for all who speak there"],
  ])("%o", (fields, told) => {
    expect(circleOf({ ...MEMORY, ...fields })).toBe(told);
  });
});

it("whoever asked for it is named, as far as that is known", () => {
  expect(askerOf(MEMORY)).toBe("Ada");
  expect(askerOf({ ...MEMORY, asked_by_me: true })).toBe("You");
  expect(askerOf({ ...MEMORY, asked_by: null })).toBe("somebody");
});
