import { expect, test } from "vitest";
import { describeInterruption } from "./interruptions";

const ada = { id: "p_ada", name: "Ada" };

test("an answer that the reader stopped says so, and one that another member stopped says who did", () => {
  expect(describeInterruption({ facts: { reason: "stopped" }, person: ada }, "p_ada")).toBe("You stopped this answer.");
  expect(describeInterruption({ facts: { reason: "stopped" }, person: ada }, "p_bob")).toBe("Ada stopped this answer.");
  expect(describeInterruption({ facts: { reason: "stopped" }, person: { id: "p_ada", name: "" } }, "p_bob")).toBe(
    "Another member stopped this answer.",
  );
});

test("every other reason is a sentence", () => {
  const describe = (facts: Record<string, unknown>) => describeInterruption({ facts, person: null }, "p_ada");
  expect(describe({ reason: "timed_out", minutes: 30 })).toBe("The answer took longer than 30 minutes, so it was stopped.");
  const reasons = ["interrupted_by_message", "server_stopped", "server_restarted", "access_ended", "something_new", undefined];
  expect(new Set(reasons.map((reason) => describe({ reason }))).size).toBe(5);
});
