import { expect, test } from "vitest";
import { ApiError } from "../../api/errors";
import { setNames } from "./settingNames";
import { formatValue, getHeading, nameKey, parseValue, quotePart, readProblems, removeKey, splitKey } from "./settingValues";

test("values become text and values again", () => {
  for (const [value, shape] of [
    [4, { kind: "integer", is_list: false }],
    [["a", "b"], { kind: "text", is_list: true }],
    [true, { kind: "boolean", is_list: false }],
    [null, { kind: "url", is_list: false }],
  ] as const) {
    expect(parseValue(formatValue(value), shape)).toEqual(value);
  }
  expect(parseValue("four", { kind: "integer", is_list: false })).toBe("four");
});

test("a part of a key with a dot is quoted, and split as one part", () => {
  expect(splitKey(`prices.${quotePart("openai:gpt-5.4")}.input`)).toEqual(["prices", "openai:gpt-5.4", "input"]);
});

test("keys have the names and headings that the server says", () => {
  const parts = { session_reset: "When conversations restart", idle_minutes: "Minutes without a message", public_url: "Public address (URL)", platforms: "Platforms" };
  setNames({ parts, choices: {} });
  expect([nameKey("session_reset.idle_minutes"), nameKey("web.public_url"), getHeading("session_reset.idle_minutes")]).toEqual([
    "Minutes without a message",
    "Public address (URL)",
    "When conversations restart",
  ]);
  expect(getHeading("platforms.local.busy_policy")).toBe("Platforms › Terminal");
});

test("problems are found by key, and those of other keys are kept", () => {
  const problems = [
    { key: "turns.max_running", message: "turns.max_running: 0 is not allowed" },
    { key: "model", message: "model: unknown" },
  ];
  const found = readProblems(new ApiError(422, "invalid_settings", "", { problems }), new Set(["turns.max_running"]));
  expect([...found]).toEqual([
    ["turns.max_running", "0 is not allowed"],
    ["", "model: unknown"],
  ]);
});

test("a problem beside its field does not repeat the key", () => {
  const key = "platforms.telegram.settings.bot_token";
  expect(removeKey(key, `${key} is not valid: This is not a bot token.`)).toBe("This is not a bot token.");
  expect(removeKey(key, `${key} ist nicht gültig: Das ist kein Bot-Token.`)).toBe("Das ist kein Bot-Token.");
  expect(removeKey(key, `${key}: enter it`)).toBe("enter it");
  expect(removeKey(key, `${key} is required. Set it: now.`)).toBe(`${key} is required. Set it: now.`);
  expect(removeKey(key, "Telegram refuses the bot token.")).toBe("Telegram refuses the bot token.");
});
