import { expect, test } from "vitest";
import type { UsageRow } from "../shared/calls";
import { buildCsv } from "./csv";

const row = (label: string, group: string | null): UsageRow => ({
  group,
  label,
  turns: 1,
  input_tokens: 2,
  output_tokens: 3,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  cost_usd: null,
  estimated_cost_usd: null,
  unpriced_turns: 1,
});

test("a file has headings, a line for each row, and an empty cell for an unknown price", () => {
  expect(buildCsv("model", [row("small", "small")])).toBe(
    "model,turns,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,reasoning_tokens,cost_usd,estimated_cost_usd,unpriced_turns\r\n" +
      "small,1,2,3,0,0,0,,,1\r\n",
  );
});

test("names are quoted and never taken for a formula", () => {
  const [, quoted] = buildCsv("session", [row('a "b", c\nd', "id")]).split(/\r\n/);
  expect(quoted).toMatch(/^"a ""b"", c\nd",id,/);
  expect(buildCsv("person", [row("=1+1", "id")])).toContain("\r\n'=1+1,id,");
  expect(buildCsv("person", [row("@sum", null)])).toContain("\r\n'@sum,,");
});
