import { afterEach, expect, it, vi } from "vitest";
import { ApiError, UnreachableError } from "./errors";
import { readError, request } from "./http";

afterEach(() => vi.unstubAllGlobals());

it("keeps the server's code, message and facts of an error", async () => {
  const body = JSON.stringify({ error: { code: "invalid_input", message: "too long", facts: { most: 3 } } });
  expect(await readError(new Response(body, { status: 422 }))).toMatchObject({ status: 422, message: "too long", facts: { most: 3 } });
});

it("reports the status of an error without a readable body, as proxies send them", async () => {
  const error = await readError(new Response("<html>", { status: 413 }));
  expect(error).toBeInstanceOf(ApiError);
  expect(error.message).toBe("HTTP 413");
});

it("treats a proxy that cannot reach the server like an unreachable server", async () => {
  expect(await readError(new Response("<html>", { status: 502 }))).toBeInstanceOf(UnreachableError);
});

it("treats an answer that was cut off like an unreachable server", async () => {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response('{"sess', { status: 200 })));
  await expect(request("GET", "/api/sessions")).rejects.toBeInstanceOf(UnreachableError);
});
