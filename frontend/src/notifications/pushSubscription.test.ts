import { afterEach, expect, test, vi } from "vitest";
import { ApiError } from "../api/errors";
import * as calls from "../api/calls";
import { turnPushOn } from "./pushSubscription";

const SERVER_KEY = "A".repeat(88);

/** A browser that gets a new address whenever it subscribes after it has unsubscribed. */
function usePushManager(): void {
  let number = 0;
  let current: { endpoint: string } | null = null;
  const make = (endpoint: string) => ({
    endpoint,
    options: { applicationServerKey: null },
    toJSON: () => ({ endpoint, keys: { p256dh: "p", auth: "a" } }),
    unsubscribe: () => {
      current = null;
      return Promise.resolve(true);
    },
  });
  const pushManager = {
    getSubscription: () => Promise.resolve(current),
    subscribe: () => Promise.resolve((current ??= make(`https://push.example/${String(++number)}`))),
  };
  vi.stubGlobal("navigator", { serviceWorker: { getRegistration: () => Promise.resolve({ pushManager }) } });
}

function useServer(refuse: (endpoint: string) => ApiError | null): string[] {
  const endpoints: string[] = [];
  vi.spyOn(calls, "getPushStatus").mockResolvedValue({ is_enabled: true, is_subscribed: false, server_key: SERVER_KEY });
  vi.spyOn(calls, "subscribeToPush").mockImplementation(({ endpoint }) => {
    endpoints.push(endpoint);
    const error = refuse(endpoint);
    return error === null ? Promise.resolve(undefined) : Promise.reject(error);
  });
  return endpoints;
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test("a browser whose address belongs to another person gets a new one", async () => {
  usePushManager();
  const endpoints = useServer((endpoint) => (endpoint.endsWith("/1") ? new ApiError(422, "invalid_input", "taken", {}) : null));
  await turnPushOn("p_1");
  expect(endpoints).toEqual(["https://push.example/1", "https://push.example/2"]);
});

test("another error is reported and tried once", async () => {
  usePushManager();
  const endpoints = useServer(() => new ApiError(503, "store_busy", "busy", {}));
  await expect(turnPushOn("p_1")).rejects.toThrow("busy");
  expect(endpoints).toHaveLength(1);
});
