import { expect, it } from "vitest";
import { fitting } from "./choices";

const CITIES = ["Lisbon", "Zürich", "A trip to Lisbon", "Oslo"];
const found = (typed: string) => fitting(CITIES, typed, (name) => [name, ""]);

it("offers everything before anything was typed", () => {
  expect(found(" ")).toEqual(CITIES);
});

it("puts first what begins with it", () => {
  expect(found("lis")).toEqual(["Lisbon", "A trip to Lisbon"]);
  expect(found("lisbon trip")).toEqual(["A trip to Lisbon"]);
});

it("finds letters with accents by those without, and the other way round", () => {
  expect(found("zurich")).toEqual(["Zürich"]);
  expect(found("Óslo")).toEqual(["Oslo"]);
});
