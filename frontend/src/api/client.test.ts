import { afterEach, expect, it, vi } from "vitest";
import { ApiError, ask, refusal, Unreachable } from "./client";

afterEach(() => vi.unstubAllGlobals());

it("says what was refused in the words of the server", async () => {
  const body = JSON.stringify({ error: { code: "invalid_input", message: "too long", facts: { most: 3 } } });
  expect(await refusal(new Response(body, { status: 422 }))).toMatchObject({ status: 422, message: "too long", facts: { most: 3 } });
});

it("says something of a refusal without words, as proxies give them", async () => {
  const refused = await refusal(new Response("<html>", { status: 413 }));
  expect(refused).toBeInstanceOf(ApiError);
  expect(refused.message).toBe("HTTP 413");
});

it("takes a proxy without a server behind it for nobody", async () => {
  expect(await refusal(new Response("<html>", { status: 502 }))).toBeInstanceOf(Unreachable);
});

it("takes an answer that was cut for none", async () => {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response('{"sess', { status: 200 })));
  await expect(ask("GET", "/sessions")).rejects.toBeInstanceOf(Unreachable);
});
