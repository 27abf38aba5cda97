import { expect, it } from "vitest";
import { placeList } from "./placement";

const viewport = { top: 0, bottom: 800 };

it("opens a list above its field if there is room, and below it otherwise", () => {
  expect(placeList({ top: 700, bottom: 780 }, viewport, 900)).toEqual({ side: "above", maxHeight: 304 });
  expect(placeList({ top: 150, bottom: 300 }, viewport, 900)).toEqual({ side: "below", maxHeight: 304 });
  expect(placeList({ top: 150, bottom: 300 }, viewport, 100)).toEqual({ side: "above", maxHeight: 134 });
});

it("opens a list on the larger side, and inside the window, if there is little room on both", () => {
  expect(placeList({ top: 120, bottom: 200 }, { top: 0, bottom: 300 }, 900)).toEqual({ side: "above", maxHeight: 104 });
  expect(placeList({ top: 60, bottom: 140 }, { top: 0, bottom: 300 }, 900)).toEqual({ side: "below", maxHeight: 144 });
  expect(placeList({ top: 10, bottom: 290 }, { top: 0, bottom: 300 }, 900).maxHeight).toBe(0);
});

it("leaves out what an on-screen keyboard covers", () => {
  expect(placeList({ top: 150, bottom: 300 }, { top: 0, bottom: 420 }, 900)).toEqual({ side: "above", maxHeight: 134 });
});
