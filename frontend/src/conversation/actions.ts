/** What can be done with conversations, with a word to the person when it did not work. */
import * as calls from "../api/calls";
import type { LogEvent, SessionPatch } from "../api/types";
import { go, whereWeAre } from "../lib/router";
import type { Center } from "../live/center";
import type { Entry } from "../outbox/entries";
import { confirm } from "../ui/confirm";
import { tellFailure, toast } from "../ui/toasts";
import { words } from "../words";
import { NEW, offerText } from "./composing";
import { filesOf } from "./content";

/** Do something; whether it worked. */
export async function attempt(act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    tellFailure(error);
    return false;
  }
}

const underWay = new Set<string>();

/** Do something, unless it is being done already: a button may be pressed twice. */
async function once(name: string, act: () => Promise<unknown>): Promise<boolean> {
  if (underWay.has(name)) return false;
  underWay.add(name);
  try {
    return await attempt(act);
  } finally {
    underWay.delete(name);
  }
}

/** Change conversations, each by itself; the page shows it at once and goes back where it was refused. */
export async function change(center: Center, ids: readonly string[], changes: SessionPatch): Promise<boolean> {
  const done = await Promise.all(
    ids.map((id) => attempt(async () => center.keepSession(await calls.changeSession(id, changes, center.everybodys.value)))),
  );
  return done.every(Boolean);
}

export async function archive(center: Center, ids: readonly string[], archived: boolean): Promise<boolean> {
  const worked = await change(center, ids, { archived });
  if (worked && archived) {
    toast(words.archivedDone, { label: words.takeBack, act: () => void change(center, ids, { archived: false }) });
  }
  return worked;
}

export async function move(center: Center, ids: readonly string[], project: { id: string; name: string } | null): Promise<boolean> {
  const worked = await change(center, ids, { project: project?.id ?? null });
  if (worked && project !== null) toast(words.movedTo(project.name));
  return worked;
}

export async function remove(center: Center, ids: readonly string[]): Promise<boolean> {
  const question = { title: words.deleteTitle(ids.length), text: words.deleteText, action: words.delete };
  if (!(await confirm(question))) return false;
  const gone: string[] = [];
  for (const id of ids) {
    if (await attempt(() => calls.deleteSession(id, center.everybodys.value))) gone.push(id);
  }
  if (gone.includes(whereWeAre().step)) go("");
  center.forget(gone);
  for (const id of gone) center.unfinished.forget(id);
  if (gone.length > 0) toast(words.deleted(gone.length));
  return gone.length === ids.length;
}

export async function fork(center: Center, id: string, at: number | null): Promise<void> {
  await once(`fork ${id} ${at}`, async () => {
    const copy = await calls.fork(id, at);
    center.keepSession(copy);
    go(copy.id);
    toast(words.forked);
  });
}

/** Say something else instead of an earlier message, in a copy. */
export async function editAndAsk(center: Center, id: string, { seq, message }: LogEvent, text: string): Promise<boolean> {
  const files = filesOf(message?.content ?? null).map((file) => file.id);
  return attempt(async () => {
    const { session } = await calls.edit(id, seq, text, files);
    center.keepSession(session);
    go(session.id);
    toast(words.forked);
  });
}

/** Put what was refused back to where it is written, behind what is there. */
export function writeAgain(center: Center, entry: Entry, place: string): void {
  const text = [center.unfinished.text(place), entry.text].filter((each) => each !== "").join("\n\n");
  center.unfinished.keepText(place, text);
  offerText(place, text);
  center.unfinished.putBack(place, entry.attachments);
  center.outbox.drop(entry.key);
  if (place === NEW) go("");
}

/** Take the last turn back, and offer what was asked to be asked differently. */
export async function undo(id: string): Promise<void> {
  await once(`undo ${id}`, async () => {
    const { facts } = await calls.undo(id);
    if (typeof facts.prompt === "string") offerText(id, facts.prompt, "if-empty");
  });
}

export async function redo(id: string): Promise<void> {
  await once(`redo ${id}`, () => calls.redo(id));
}

/** Ask for another answer. */
export async function retry(id: string): Promise<void> {
  await once(`retry ${id}`, () => calls.retry(id));
}

export async function restore(center: Center, id: string): Promise<void> {
  await attempt(async () => {
    const receipt = await calls.restore(id);
    if (receipt.session_id !== null && receipt.session_id !== id) go(receipt.session_id);
    else if (receipt.reply !== null) center.reply(id, receipt.reply);
  });
}

/** Let a summary stand for what is older; a quiet line tells when it is there. */
export async function compress(id: string): Promise<void> {
  await attempt(async () => {
    await calls.compress(id);
    toast(words.compressing);
  });
}
