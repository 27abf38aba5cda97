import { expect, test } from "vitest";
import { findModels } from "./modelSearch";

const PROVIDERS = [
  { provider: "openai", title: "OpenAI", models: ["openai:gpt-large", "openai:gpt-small"], error: null },
  { provider: "lab", title: "lab", models: ["lab:llama-70b-instruct"], error: null },
  { provider: "gone", title: "gone", models: [], error: "Could not connect" },
];

test("a model is found by all words, in any order and case", () => {
  expect(findModels(PROVIDERS, " Instruct LLAMA ").map(({ models }) => models)).toEqual([["lab:llama-70b-instruct"]]);
  expect(findModels(PROVIDERS, "openai small").flatMap(({ models }) => models)).toEqual(["openai:gpt-small"]);
});

test("without words, everything that exists is listed", () => {
  expect(findModels(PROVIDERS, "  ").map(({ provider }) => provider)).toEqual(["openai", "lab"]);
  expect(findModels(PROVIDERS, "mistral")).toEqual([]);
});
