import { createElement } from "react";
import { expect, it } from "vitest";
import { renderForTest } from "../../testing/renderForTest";
import type { ProviderTest } from "./settingsApi";
import { TestResult } from "./TestResult";

const FAILED: ProviderTest = { ok: false, model: null, seconds: 0.1, reply: null, error: "It failed.", detail: null, facts: {} };

function describe(test: Partial<ProviderTest>, hasOwnAddress = true): string {
  return renderForTest(createElement(TestResult, { test: { ...FAILED, ...test }, hasOwnAddress })).textContent;
}

it("says that the address is wrong, and not that the provider is down, if there is nothing at the address", () => {
  const text = describe({ detail: "Not Found", facts: { code: "provider_unavailable", status: 404, provider_title: "lab" } });
  expect(text).toContain("There is nothing at this address (HTTP 404). Check the address");
  expect(text).not.toContain("at the moment");
});

it("asks to check an address that answers with a page for people, if a person has entered it", () => {
  const facts = { code: "invalid_response", provider_title: "lab" };
  expect(describe({ facts })).toContain("usually ends in /v1");
  expect(describe({ facts }, false)).not.toContain("/v1");
});

it("shows the words of the provider once, and does not take those of the connection for them", () => {
  const said = describe({ error: "lab rejected the API key. It has expired.", detail: "It has expired.", facts: { code: "key_rejected" } });
  expect(said.split("It has expired.")).toHaveLength(2);
  const failed = describe({ detail: "Name or service not known", facts: { code: "cannot_connect", provider_title: "lab" } });
  expect(failed).toContain("Details: Name or service not known");
  expect(failed).not.toContain("The provider says");
});
