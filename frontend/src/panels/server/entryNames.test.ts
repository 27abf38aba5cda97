import { expect, it } from "vitest";
import type { Settings } from "../forms/settingsApi";
import { describeEntryName, listEntryNames } from "./entryNames";

const settings = { settings: [], templates: [], platforms: [{ platform: "telegram" }] } as unknown as Settings;

it("offers the server's own names, and no others where no others are possible", () => {
  expect(listEntryNames(settings, "reset_by_platform", [])).toEqual({ names: ["web", "local", "api", "telegram"], isOpen: false });
  expect(listEntryNames(settings, "models_by_role", [])).toEqual({ names: ["owner", "member", "guest"], isOpen: false });
  expect(listEntryNames(settings, "reset_by_type", []).names).toContain("group");
  for (const collection of ["reset_by_platform", "models_by_role", "reset_by_type", "toolsets"])
    for (const name of listEntryNames(settings, collection, []).names) expect(describeEntryName(collection, name)).not.toBe("");
});

it("suggests models, and takes any name", () => {
  expect(listEntryNames(settings, "prices", ["openai:gpt"])).toEqual({ names: ["openai:gpt"], isOpen: true });
  expect(listEntryNames(settings, "profiles", ["openai:gpt"])).toEqual({ names: [], isOpen: true });
});
