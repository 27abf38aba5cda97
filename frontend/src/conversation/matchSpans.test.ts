import { describe, expect, it } from "vitest";
import { findMatchRanges, findMatchSpans } from "./matchSpans";

const findTexts = (text: string, searched: string[]) => findMatchSpans(text, searched).map(([start, end]) => text.slice(start, end));

describe("matches in a rendered text", () => {
  it("are whole words, in any letter case", () => {
    expect(findTexts("Transport by port. A Port!", ["port"])).toEqual(["port", "Port"]);
  });

  it("are found whatever stands between the words of a phrase", () => {
    expect(findTexts("night\ntrains, night — trains; nights", ["night trains"])).toEqual(["night\ntrains", "night — trains"]);
  });

  it("are found in scripts without spaces, and with characters that are special in patterns", () => {
    expect(findTexts("東京日本語", ["日本"])).toEqual(["日本"]);
    expect(findTexts("a+b (c)", ["c", "+("])).toEqual(["c"]);
    expect(findTexts("nothing", [])).toEqual([]);
  });
});

it("finds ranges that span several elements", () => {
  document.body.innerHTML = "<article><p>A <b>night</b> <i>train</i> to Lisbon</p><p>the night train</p></article>";
  const ranges = findMatchRanges(document.body, ["night train"]);
  expect(ranges.map((range) => range.toString())).toEqual(["night train", "night train"]);
});
