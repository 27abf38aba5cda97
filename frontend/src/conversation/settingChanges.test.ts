import { expect, it } from "vitest";
import { buildRevert, describeChange } from "./settingChanges";

it("describes a change, also back to the configured value", () => {
  expect(describeChange({ setting: "busy_policy", value: "steer", previous: null })).toBe("New messages while the agent responds: Steer.");
  expect(describeChange({ setting: "busy_policy", value: null, previous: "steer" })).toBe("New messages while the agent responds: default.");
  expect(describeChange({ setting: "model", value: null, previous: "a" })).toContain("the default model");
});

it("builds the patch that restores the previous value", () => {
  expect(buildRevert({ setting: "busy_policy", value: "steer", previous: null })).toEqual({ busy_policy: null });
  expect(buildRevert({ setting: "busy_policy", value: null, previous: "interrupt" })).toEqual({ busy_policy: "interrupt" });
  expect(buildRevert({ setting: "model", value: "b", previous: "a" })).toEqual({ model: "a" });
  expect(buildRevert({ setting: "toolsets", value: ["memory"], previous: [] })).toEqual({ toolsets: { memory: true } });
  expect(buildRevert({ setting: "unknown", value: 1, previous: 2 })).toBeNull();
});

it("describes and reverts the profile, the personality and the workspace", () => {
  expect(describeChange({ setting: "profile", value: "work", previous: null })).toBe("Profile changed to work.");
  expect(describeChange({ setting: "profile", value: null, previous: "work" })).toBe("Profile changed to the default.");
  expect(describeChange({ setting: "personality", value: null, previous: "pirate" })).toBe("Personality removed.");
  expect(describeChange({ setting: "workspace", value: "/srv", previous: null })).toBe("Workspace: /srv.");
  expect(buildRevert({ setting: "profile", value: null, previous: "work" })).toEqual({ profile: "work" });
  expect(buildRevert({ setting: "workspace", value: "/srv", previous: null })).toEqual({ workspace: null });
});
