import { expect, test } from "vitest";
import { listNestedTemplates, listPlainSettings, makeNestedKey } from "./sections";
import type { Settings, SettingTemplate } from "./settingsApi";

const template = (key: string, isTerminalOnly = false) => ({ key, is_terminal_only: isTerminalOnly }) as SettingTemplate;
const HEADERS = template("mcp_servers.<name>.headers.<name>");
const TEMPLATES = [
  template("mcp_servers.<name>.url"),
  template("mcp_servers.<name>.env.<name>", true),
  HEADERS,
  template("personalities.<name>"),
];

test("names can be added to the maps of an entry, unless they are for the terminal only", () => {
  const settings = { templates: TEMPLATES } as unknown as Settings;
  expect(listNestedTemplates(settings, "mcp_servers")).toEqual([HEADERS]);
  expect(listNestedTemplates(settings, "personalities")).toEqual([]);
});

test("the platforms that are always there have a busy policy among the settings of answers", () => {
  const templates = [template("turns.max_running"), template("platforms.<name>.busy_policy")];
  const found = { key: "turns.max_running", template: "turns.max_running" };
  const settings = { templates, settings: [found] } as unknown as Settings;
  const keys = listPlainSettings(settings, "turns").map(({ key }) => key);
  expect(keys).toEqual(["turns.max_running", "platforms.web.busy_policy", "platforms.local.busy_policy", "platforms.api.busy_policy"]);
  expect(listPlainSettings(settings, "memory")).toEqual([]);
});

test("the key of a new name has both names, quoted where needed", () => {
  expect(makeNestedKey(HEADERS, "files", "X-Api-Key")).toBe("mcp_servers.files.headers.X-Api-Key");
  expect(makeNestedKey(HEADERS, "$&", "a.b")).toBe('mcp_servers.$&.headers."a.b"');
});
