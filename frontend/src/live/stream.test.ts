import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { LiveItem } from "../api/types";
import { LiveStream } from "./stream";

let connections: ReadableStreamDefaultController<Uint8Array>[];
let cursors: (string | null)[];
let received: LiveItem[];

beforeEach(() => {
  connections = [];
  cursors = [];
  received = [];
  vi.stubGlobal("fetch", (_url: string, { headers }: RequestInit) => {
    cursors.push(new Headers(headers).get("Last-Event-ID"));
    const body = new ReadableStream<Uint8Array>({ start: (controller) => connections.push(controller) });
    return Promise.resolve(new Response(body));
  });
});

afterEach(() => vi.unstubAllGlobals());

function send(connection: number, text: string): void {
  connections[connection]?.enqueue(new TextEncoder().encode(text));
}

it("reads what was sent on the old connection, also when the new one is ready first", async () => {
  const onConnection = vi.fn();
  const stream = new LiveStream({ onItems: (items) => received.push(...items), onConnection, onRejected: vi.fn() });
  stream.follow({ follow: null, all: false });
  send(0, ": ready\n\n");
  await vi.waitFor(() => expect(onConnection).toHaveBeenLastCalledWith("live"));
  onConnection.mockClear();
  stream.follow({ follow: { id: "s", after: 1 }, all: false });
  send(1, ": ready\n\n");
  await vi.waitFor(() => expect(onConnection).toHaveBeenLastCalledWith("live"));
  send(0, 'event: lists_changed\ndata: {"sent": "before the new connection was subscribed"}\n\n');
  await vi.waitFor(() => expect(received.map((item) => item.name)).toEqual(["lists_changed"]));
  stream.close();
});

it("asks for changed lists unless an earlier connection covers them", async () => {
  const onConnection = vi.fn();
  const stream = new LiveStream({ onItems: vi.fn(), onConnection, onRejected: vi.fn() });
  stream.follow({ follow: null, all: false });
  send(0, ": ready\n\n");
  await vi.waitFor(() => expect(onConnection).toHaveBeenLastCalledWith("live"));
  stream.follow({ follow: { id: "s", after: 1 }, all: false });
  stream.follow({ follow: null, all: true });
  stream.follow({ follow: { id: "s", after: 1 }, all: true });
  send(3, ": ready\n\n");
  await vi.waitFor(() => expect(onConnection).toHaveBeenCalledTimes(3));
  stream.follow({ follow: null, all: false });
  expect(cursors).toEqual(["", null, "", "", ""]);
  stream.close();
});

it("ignores what comes on a connection for everyone's conversations after a switch to one's own", async () => {
  const onConnection = vi.fn();
  const stream = new LiveStream({ onItems: (items) => received.push(...items), onConnection, onRejected: vi.fn() });
  stream.follow({ follow: null, all: true });
  send(0, ": ready\n\n");
  await vi.waitFor(() => expect(onConnection).toHaveBeenLastCalledWith("live"));
  stream.follow({ follow: null, all: false });
  send(0, 'event: session\ndata: {"id": "someone else\'s"}\n\n');
  send(1, 'event: lists_changed\ndata: {}\n\n');
  await vi.waitFor(() => expect(received.map((item) => item.name)).toEqual(["lists_changed"]));
  stream.close();
});
