import { expect, it } from "vitest";
import { findMatches } from "./choices";

const CITIES = ["Lisbon", "Zürich", "A trip to Lisbon", "Oslo"];
const findCities = (typed: string) => findMatches(CITIES, typed, (name) => [name, ""]);

it("offers everything before anything is typed", () => {
  expect(findCities(" ")).toEqual(CITIES);
});

it("lists first what starts with the text", () => {
  expect(findCities("lis")).toEqual(["Lisbon", "A trip to Lisbon"]);
  expect(findCities("lisbon trip")).toEqual(["A trip to Lisbon"]);
});

it("finds letters with accents by letters without, and the other way round", () => {
  expect(findCities("zurich")).toEqual(["Zürich"]);
  expect(findCities("Óslo")).toEqual(["Oslo"]);
});
