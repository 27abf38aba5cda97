import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { message, session } from "../lib/samples";
import { CURRENT } from "../sidebar/chosen";
import { Center } from "./center";

const [ONE, TWO] = ["20261115_081200_00000001", "20261115_081200_00000002"];
const ME = "p_1";

let asked: URL[];
let held: Map<string, (response: Response) => void>; // by the path that is asked for

const json = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });
const page = (...seqs: number[]) =>
  json(200, { events: seqs.map((seq) => message(seq, "x")), more_before: true, more_after: true });

beforeEach(() => {
  localStorage.clear();
  asked = [];
  held = new Map();
  vi.stubGlobal("fetch", (url: string) => {
    const { pathname, search } = new URL(url);
    asked.push(new URL(url));
    return new Promise<Response>((resolve) => held.set(pathname + search, resolve));
  });
});

afterEach(() => vi.unstubAllGlobals());

async function answer(wanted: RegExp, response: Response): Promise<void> {
  const found = await vi.waitFor(() => {
    const name = [...held.keys()].find((each) => wanted.test(each));
    if (name === undefined) throw new Error(`nobody asks for ${wanted.source}`);
    return name;
  });
  held.get(found)?.(response);
  held.delete(found);
}

const followed = () => asked.filter(({ pathname }) => pathname.endsWith("/live")).map(({ searchParams }) => searchParams.get("follow"));

it("follows what was opened last, whatever becomes of what was opened before", async () => {
  const center = new Center(ME);
  const first = center.open(ONE, null);
  const second = center.open(TWO, null);
  await answer(new RegExp(`${TWO}$`), json(200, session(TWO)));
  await answer(new RegExp(`${TWO}/messages`), json(200, { events: [message(1, "hi")], more_before: false, more_after: false }));
  await second;
  await answer(new RegExp(`${ONE}$`), json(404, { error: { code: "no_such_session", message: "gone", facts: {} } }));
  await first;
  expect(followed()).toEqual([`${TWO}:1`]);
});

it("shows the place in a conversation that was asked for last, whichever comes first", async () => {
  const center = new Center(ME);
  center.keepSession(session(ONE));
  const first = center.open(ONE, 5);
  const second = center.open(ONE, 500);
  await answer(/around=500/, page(499, 500, 501));
  await second;
  await answer(/around=5&/, page(4, 5, 6));
  await first;
  expect(center.state.value.conversations[ONE]?.events.map(({ seq }) => seq)).toEqual([499, 500, 501]);
});

it("asks nothing more when its person has gone, also when what was shown leaves later", () => {
  const center = new Center(ME);
  const stop = center.start();
  void center.open(ONE, null);
  stop();
  const before = asked.length;
  center.leave();
  expect(asked.length).toBe(before);
});

it("gives files back that were added to a command, which takes none", async () => {
  const center = new Center(ME);
  const attachments = [{ id: "f_1", name: "a.txt", type: "text/plain", size: 1 }];
  const receipt = { session_id: ONE, turn_id: null, seq: null, ahead: 0, reply: "Done.", facts: {} };
  center.say({ text: "/help", attachments, session: ONE, begin: {} });
  await answer(/messages$/, json(202, { ...receipt, outcome: "command" }));
  await vi.waitFor(() => expect(center.unfinished.added(ONE).map((each) => each.name)).toEqual(["a.txt"]));
  center.say({ text: "look", attachments, session: TWO, begin: {} });
  await answer(/messages$/, json(202, { ...receipt, session_id: TWO, seq: 2, outcome: "accepted" }));
  await vi.waitFor(() => expect(center.outbox.entries.value.map((each) => each.seq)).toEqual([2]));
  expect(center.unfinished.added(TWO)).toEqual([]);
});

it("tells of an answer that ended while the line was cut, once the list is fetched again", async () => {
  const center = new Center(ME);
  const answered = vi.fn();
  center.onAnswered(answered);
  const listed = (more: object) => json(200, { sessions: [session(ONE, more)], cursor: null });
  const first = center.lists.more(CURRENT);
  await answer(/sessions\?.*current/, listed({ running: true, last_seq: 1 }));
  await answer(/sessions\?.*pinned/, json(200, { sessions: [], cursor: null }));
  await first;
  const again = center.lists.refresh();
  await answer(/sessions\?.*current/, listed({ last_seq: 2 }));
  await answer(/sessions\?.*pinned/, json(200, { sessions: [], cursor: null }));
  await again;
  expect(answered.mock.calls).toEqual([[ONE]]);
});
