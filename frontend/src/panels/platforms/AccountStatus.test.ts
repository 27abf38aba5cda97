import { createElement } from "react";
import { expect, it } from "vitest";
import { renderForTest } from "../../testing/renderForTest";
import type { PlatformAccount } from "../shared/calls";
import { AccountStatuses } from "./AccountStatus";

const account: PlatformAccount = {
  platform: "telegram",
  account: "",
  configured: true,
  state: "live",
  since: "2020-01-02T10:00:00Z",
  name: "@bot",
  warnings: [],
  last_message_at: null,
  error: null,
  error_at: null,
  waiting: 0,
  uncertain: 0,
  failed: 0,
  delivery_error: null,
  delivery_error_at: null,
  home_channel: null,
};

const render = (platform: string, ...changes: Partial<PlatformAccount>[]) =>
  renderForTest(createElement(AccountStatuses, { platform, accounts: changes.map((change) => ({ ...account, ...change })) }));

it("shows since when an account is connected, what is missing, and what came last", () => {
  const text = render("telegram", { warnings: ["Privacy mode is on."], last_message_at: "2020-01-03T10:00:00Z", waiting: 2 }).textContent;
  expect(text).toContain("@botConnected since Jan 2, 2020");
  expect(text).toContain("Privacy mode is on.");
  expect(text).toContain("Last message: Jan 3, 2020");
  expect(text).toContain("2 messages waiting to be sent");
});

it("shows why an account is not connected", () => {
  const element = render("telegram", { state: "refused", error: "Token revoked.", error_at: "2020-01-02T10:00:00Z" });
  expect(element.textContent).toContain("Needs your attention");
  expect(element.querySelector(".account-problem")?.textContent).toBe("Last error, Jan 2, 2020: Token revoked.");
  expect(element.textContent).not.toContain("Connected since");
});

it("keeps the last error of an account that is connected again, but not as a problem", () => {
  const element = render("telegram", { error: "Server down.", error_at: "2020-01-02T10:00:00Z" });
  expect(element.textContent).toContain("Last error, Jan 2, 2020: Server down.");
  expect(element.querySelector(".account-problem")).toBeNull();
});

it("tells several accounts of a platform apart", () => {
  const states = [...render("telegram", { account: "home" }, { account: "work", name: null, state: "deaf" }).querySelectorAll(".account-state")];
  expect(states.map((each) => each.textContent)).toEqual(["home · @botConnected since Jan 2, 2020", "workNot responding. Connecting again…"]);
});

it("names the home channel, or says where it is if it has no name", () => {
  expect(render("telegram", { home_channel: { name: "Ops", target: "telegram:-7" } }).textContent).toContain("Home channel: Ops");
  expect(render("telegram", { home_channel: { name: "", target: "telegram:-7" } }).textContent).toContain("Home channel: telegram:-7");
});

it("shows deliveries that did not arrive", () => {
  const text = render("telegram", { uncertain: 1, failed: 2, delivery_error: "Chat gone.", delivery_error_at: "2020-01-02T10:00:00Z" }).textContent;
  expect(text).toContain("1 message with unknown delivery status");
  expect(text).toContain("2 messages not delivered");
  expect(text).toContain("Chat gone.");
});

it("says so when a platform is not set up, and nothing about those that need no connection", () => {
  expect(render("telegram").textContent).toContain("Not connected");
  expect(render("web").textContent).toBe("");
});
