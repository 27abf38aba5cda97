import { QueryClientProvider } from "@tanstack/react-query";
import { createElement } from "react";
import { expect, it } from "vitest";
import { createQueryClient } from "../../api/queryClient";
import { renderForTest } from "../../testing/renderForTest";
import type { PlatformAccount } from "../shared/calls";
import { AccountStatuses } from "./AccountStatus";
import { describeResult } from "./ConnectionTest";
import { drawSquares } from "./QrCode";

const account: PlatformAccount = {
  platform: "telegram",
  account: "",
  configured: true,
  state: "live",
  since: "2020-01-02T10:00:00Z",
  name: "@bot",
  warnings: [],
  details: [],
  linking: null,
  last_message_at: null,
  error: null,
  error_at: null,
  last_test: null,
  waiting: 0,
  uncertain: 0,
  failed: 0,
  delivery_error: null,
  delivery_error_at: null,
  home_channel: null,
};

const render = (platform: string, ...changes: Partial<PlatformAccount>[]) => {
  const statuses = createElement(AccountStatuses, { platform, accounts: changes.map((change) => ({ ...account, ...change })) });
  return renderForTest(createElement(QueryClientProvider, { client: createQueryClient() }, statuses));
};

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

it("shows the last error of an account that waits to be linked not as a problem: what to do stands above it", () => {
  const linking = { instructions: "Open Signal.", qr_code: null, code: "ABCD-1234", expires_at: null };
  const element = render("signal", { state: "linking", linking, error: "Server down.", error_at: "2020-01-02T10:00:00Z" });
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

it("shows what to scan and to type while an account waits to be linked, and no button that would disturb it", () => {
  const linking = { instructions: "Open Signal.", qr_code: ["10", "01"], code: "ABCD-1234", expires_at: null };
  const element = render("signal", { platform: "signal", state: "linking", linking });
  expect(element.textContent).toContain("Waiting to be linked");
  expect(element.textContent).toContain("Open Signal.");
  expect(element.querySelector("code")?.textContent).toBe("ABCD-1234");
  expect(element.querySelector("svg[role=img]")?.getAttribute("aria-label")).toBe("QR code to link Signal");
  expect(element.textContent).not.toContain("Connect now");
});

it("draws the dark squares of a QR code inside a light margin", () => {
  expect(drawSquares(["110", "001"])).toBe("M4 4h2v1h-2zM6 5h1v1h-1z");
});

it("shows details, and offers the test that fits the state", () => {
  expect(render("telegram", { details: ["Version 2"] }).textContent).toMatch(/Version 2.*Test connection/);
  expect(render("telegram", { state: "refused" }).textContent).toContain("Connect now");
  expect(render("telegram", { state: "off" }).querySelector("button")).toBeNull();
});

it("says in words how a test went", () => {
  const test = (error: string | null) => ({ finished_at: "2020-01-02T10:00:00Z", seconds: 0.4, error });
  const describe = (change: Partial<PlatformAccount>) => describeResult({ ...account, ...change }).replaceAll("\u00a0", " ");
  expect(describe({ last_test: test(null) })).toBe("It works: signed in as @bot (0.4 s).");
  expect(describe({ last_test: test(null), name: null })).toBe("It works (0.4 s).");
  expect(describe({ last_test: test("No answer.") })).toBe("Test failed after 0.4 s: No answer.");
  expect(describe({ last_test: test("Revoked."), state: "refused", error: "Revoked." })).toBe("Still not connected (0.4 s).");
  expect(describe({ last_test: test(null), state: "linking" })).toBe("Waiting to be linked");
});
