import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { SLACK_MANIFEST } from "./slackManifest";
import { findStepLinks } from "./stepLinks";

it("links the pages and accounts that a step names, and nothing else", () => {
  expect(findStepLinks("Create an app at api.slack.com/apps.")).toEqual([
    { text: "Create an app at ", url: null },
    { text: "api.slack.com/apps", url: "https://api.slack.com/apps" },
    { text: ".", url: null },
  ]);
  expect(findStepLinks("Open a chat with @BotFather on Telegram.")[1]).toEqual({ text: "@BotFather", url: "https://t.me/BotFather" });
  expect(findStepLinks("Scan the QR code that appears here.")).toEqual([{ text: "Scan the QR code that appears here.", url: null }]);
});

it("offers the manifest that the guide for Slack shows", () => {
  const guide = readFileSync("../docs/platforms/slack.md", "utf-8");
  const block = /^ {3}```yaml\n([\s\S]*?)^ {3}```/m.exec(guide)?.[1] ?? "";
  expect(SLACK_MANIFEST).toBe(block.replace(/^ {3}/gm, ""));
});
