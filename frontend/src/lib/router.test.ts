import { expect, it } from "vitest";
import { go, sessionAt, whereWeAre } from "./router";

const ID = "20261115_081200_1a2b3c4d";

it("finds a conversation and a message in it by its address", () => {
  expect(sessionAt({ step: ID, hash: "12" })).toEqual({ id: ID, seq: 12 });
  expect(sessionAt({ step: ID, hash: "x" })).toEqual({ id: ID, seq: null });
  expect(sessionAt({ step: "usage", hash: "" })).toBeNull();
});

it("takes whatever somebody typed into an address, also what stands for no character", () => {
  go("usage", { hash: "%E0%" });
  expect(whereWeAre().hash).toBe("%E0%");
  go("usage", { hash: "%C3%A4" });
  expect(whereWeAre().hash).toBe("ä");
});
