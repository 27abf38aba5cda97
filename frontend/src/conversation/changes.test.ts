import { expect, it } from "vitest";
import { changeBack, changeText } from "./changes";

it("says what was changed, also back to what the settings say", () => {
  expect(changeText({ setting: "busy", value: "steer", was: null })).toBe("Messages in between: Steer.");
  expect(changeText({ setting: "busy", value: null, was: "steer" })).toBe("Messages in between: as the settings say.");
  expect(changeText({ setting: "model", value: null, was: "a" })).toContain("the default model");
});

it("leads back to what held before, whatever it was", () => {
  expect(changeBack({ setting: "busy", value: "steer", was: null })).toEqual({ busy: null });
  expect(changeBack({ setting: "busy", value: null, was: "interrupt" })).toEqual({ busy: "interrupt" });
  expect(changeBack({ setting: "model", value: "b", was: "a" })).toEqual({ model: "a" });
  expect(changeBack({ setting: "toolsets", value: ["memory"], was: [] })).toEqual({ toolsets: { memory: true } });
  expect(changeBack({ setting: "of another version", value: 1, was: 2 })).toBeNull();
});
