import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { message, session } from "../testing/samples";
import { ACTIVE_VIEW } from "./listViews";
import { LiveClient } from "./liveClient";

const [ONE, TWO] = ["20261115_081200_00000001", "20261115_081200_00000002"];
const ME = "p_1";

let requests: URL[];
let openRequests: Map<string, (response: Response) => void>; // by path and query

const json = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });
const buildPage = (...seqs: number[]) =>
  json(200, { events: seqs.map((seq) => message(seq, "x")), has_more_before: true, has_more_after: true });

beforeEach(() => {
  localStorage.clear();
  requests = [];
  openRequests = new Map();
  vi.stubGlobal("fetch", (url: string) => {
    const { pathname, search } = new URL(url);
    requests.push(new URL(url));
    return new Promise<Response>((resolve) => openRequests.set(pathname + search, resolve));
  });
});

afterEach(() => vi.unstubAllGlobals());

/** Waits for a request whose path and query match, and answers it. */
async function respond(pattern: RegExp, response: Response): Promise<void> {
  const path = await vi.waitFor(() => {
    const match = [...openRequests.keys()].find((each) => pattern.test(each));
    if (match === undefined) throw new Error(`no request matches ${pattern.source}`);
    return match;
  });
  openRequests.get(path)?.(response);
  openRequests.delete(path);
}

const listFollowed = () =>
  requests.filter(({ pathname }) => pathname.endsWith("/live")).map(({ searchParams }) => searchParams.get("follow"));

it("follows the session that was opened last, whatever happens to the one before", async () => {
  const client = new LiveClient(ME);
  const first = client.openSession(ONE, null);
  const second = client.openSession(TWO, null);
  await respond(new RegExp(`${TWO}$`), json(200, session(TWO)));
  await respond(
    new RegExp(`${TWO}/messages`),
    json(200, { events: [message(1, "hi")], has_more_before: false, has_more_after: false }),
  );
  await second;
  await respond(new RegExp(`${ONE}$`), json(404, { error: { code: "session_not_found", message: "gone", facts: {} } }));
  await first;
  expect(listFollowed()).toEqual([`${TWO}:1`]);
});

it("shows the messages that were requested last, whichever answer comes first", async () => {
  const client = new LiveClient(ME);
  client.storeSession(session(ONE));
  const first = client.openSession(ONE, 5);
  const second = client.openSession(ONE, 500);
  await respond(/around=500/, buildPage(499, 500, 501));
  await second;
  await respond(/around=5&/, buildPage(4, 5, 6));
  await first;
  expect(client.state.value.conversations[ONE]?.events.map(({ seq }) => seq)).toEqual([499, 500, 501]);
});

it("makes no request after it was stopped, even when the open session is closed later", () => {
  const client = new LiveClient(ME);
  const stop = client.start();
  void client.openSession(ONE, null);
  stop();
  const before = requests.length;
  client.closeSession();
  expect(requests.length).toBe(before);
});

it("returns the files of a command to the composer, because commands accept none", async () => {
  const client = new LiveClient(ME);
  const attachments = [{ id: "f_1", name: "a.txt", media_type: "text/plain", size: 1 }];
  const receipt = { session_id: ONE, turn_id: null, seq: null, ahead: 0, reply: "Done.", facts: {} };
  client.sendMessage({ text: "/help", attachments, session: ONE, newSession: {} });
  await respond(/messages$/, json(202, { ...receipt, outcome: "command" }));
  await vi.waitFor(() => expect(client.composerDrafts.getFiles(ONE).map((each) => each.name)).toEqual(["a.txt"]));
  client.sendMessage({ text: "look", attachments, session: TWO, newSession: {} });
  await respond(/messages$/, json(202, { ...receipt, session_id: TWO, seq: 2, outcome: "accepted" }));
  await vi.waitFor(() => expect(client.outbox.entries.value.map((each) => each.seq)).toEqual([2]));
  expect(client.composerDrafts.getFiles(TWO)).toEqual([]);
});

it("reports an answer that ended while the connection was lost, once the list is loaded again", async () => {
  const client = new LiveClient(ME);
  const onAnswerEnd = vi.fn();
  client.onAnswerEnd(onAnswerEnd);
  const listResponse = (more: object) => json(200, { sessions: [session(ONE, more)], next_cursor: null });
  const first = client.lists.loadMore(ACTIVE_VIEW);
  await respond(/sessions\?.*active/, listResponse({ running: true, last_seq: 1 }));
  await respond(/sessions\?.*pinned/, json(200, { sessions: [], next_cursor: null }));
  await first;
  const refreshed = client.lists.refresh();
  await respond(/sessions\?.*active/, listResponse({ last_seq: 2 }));
  await respond(/sessions\?.*pinned/, json(200, { sessions: [], next_cursor: null }));
  await refreshed;
  expect(onAnswerEnd.mock.calls).toEqual([[ONE]]);
});

it("keeps a session that arrives while a list without it is on its way, and removes one that was deleted before", async () => {
  const client = new LiveClient(ME);
  client.storeSession(session(ONE));
  const loaded = client.lists.loadMore(ACTIVE_VIEW);
  client.storeSession(session(TWO));
  await respond(/sessions\?.*active/, json(200, { sessions: [], next_cursor: null }));
  await respond(/sessions\?.*pinned/, json(200, { sessions: [], next_cursor: null }));
  await loaded;
  expect([...client.state.value.sessions.keys()]).toEqual([TWO]);
});
