import { expect, it } from "vitest";
import tokens from "./tokens.css?raw";

const MIN_RATIO = 4.5; // of WCAG, for text of ordinary size

/** The two values of each color: for the light and the dark theme. */
const COLORS = new Map(
  [...tokens.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(([, name = "", light = "", dark = ""]) => [
    name,
    [light, dark] as const,
  ]),
);
const CODE_COLORS = [...COLORS.keys()].filter((name) => name.startsWith("code-"));

function getLuminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
    const channel = Number.parseInt(color.slice(start, start + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function getContrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [getLuminance(one), getLuminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

it("has enough contrast in code, in both themes", () => {
  expect(CODE_COLORS.length).toBeGreaterThan(5);
  const backgrounds = COLORS.get("surface") ?? ["", ""];
  for (const name of CODE_COLORS) {
    COLORS.get(name)?.forEach((color, theme) => expect(getContrast(color, backgrounds[theme] ?? ""), name).toBeGreaterThanOrEqual(MIN_RATIO));
  }
});

it("has enough contrast in quiet text on every background, in both themes", () => {
  for (const name of ["text-muted", "accent", "danger"]) {
    for (const background of ["background", "surface", "surface-inset", "sidebar-background", "message-background"]) {
      COLORS.get(name)?.forEach((color, theme) =>
        expect(getContrast(color, COLORS.get(background)?.[theme] ?? ""), `${name} on ${background}`).toBeGreaterThanOrEqual(MIN_RATIO),
      );
    }
  }
});
