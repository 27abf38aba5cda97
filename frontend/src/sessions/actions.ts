/** What people can do with conversations. A toast tells them when it fails. */
import { attempt } from "../api/attempt";
import * as calls from "../api/calls";
import { readFiles } from "../api/messageContent";
import type { LogEvent, SessionPatch } from "../api/types";
import { getLocation, navigate } from "../lib/router";
import type { LiveClient } from "../live/liveClient";
import { NEW_DRAFT } from "../outbox/composerDrafts";
import type { OutboxEntry } from "../outbox/entries";
import { suggestText } from "../outbox/textSuggestions";
import { confirm } from "../ui/ConfirmDialog";
import { toast } from "../ui/toasts";
import { words } from "../words";

const runningActions = new Set<string>();

/** Runs an action unless it is already running: people press buttons twice. */
async function runOnce(name: string, act: () => Promise<unknown>): Promise<boolean> {
  if (runningActions.has(name)) return false;
  runningActions.add(name);
  try {
    return await attempt(act);
  } finally {
    runningActions.delete(name);
  }
}

/** Changes each of the sessions. Returns whether all changes worked. */
export async function updateSessions(client: LiveClient, ids: readonly string[], changes: SessionPatch): Promise<boolean> {
  const results = await Promise.all(
    ids.map((id) => attempt(async () => client.storeSession(await calls.updateSession(id, changes, client.showsAll.value)))),
  );
  return results.every(Boolean);
}

export async function archiveSessions(client: LiveClient, ids: readonly string[], archived: boolean): Promise<boolean> {
  const worked = await updateSessions(client, ids, { archived });
  if (worked && archived) {
    toast(words.conversationsArchived, { label: words.undo, act: () => void updateSessions(client, ids, { archived: false }) });
  }
  return worked;
}

export async function moveSessions(
  client: LiveClient,
  ids: readonly string[],
  project: { id: string; name: string } | null,
): Promise<boolean> {
  const worked = await updateSessions(client, ids, { project: project?.id ?? null });
  if (worked && project !== null) toast(words.movedTo(project.name));
  return worked;
}

export async function deleteSessions(client: LiveClient, ids: readonly string[]): Promise<boolean> {
  const question = {
    title: words.deleteConversationsTitle(ids.length),
    text: words.deleteConversationsText,
    action: words.delete,
  };
  if (!(await confirm(question))) return false;
  const deleted: string[] = [];
  for (const id of ids) {
    if (await attempt(() => calls.deleteSession(id, client.showsAll.value))) deleted.push(id);
  }
  if (deleted.includes(getLocation().path)) navigate("");
  client.removeSessions(deleted);
  for (const id of deleted) client.composerDrafts.discard(id);
  if (deleted.length > 0) toast(words.conversationsDeleted(deleted.length));
  return deleted.length === ids.length;
}

export async function forkSession(client: LiveClient, id: string, at: number | null): Promise<void> {
  await runOnce(`fork ${id} ${at}`, async () => {
    const fork = await calls.forkSession(id, at);
    client.storeSession(fork);
    navigate(fork.id);
    toast(words.branchOpened);
  });
}

/** Sends a changed version of an earlier message in a fork of the session. */
export async function editInFork(client: LiveClient, id: string, { seq, message }: LogEvent, text: string): Promise<boolean> {
  const files = readFiles(message?.content ?? null).map((file) => file.id);
  return attempt(async () => {
    const { session } = await calls.editMessage(id, seq, text, files, true);
    client.storeSession(session);
    navigate(session.id);
    toast(words.branchOpened);
  });
}

/** Moves a rejected message to the composer, after the text that is already there. */
export function moveToComposer(client: LiveClient, entry: OutboxEntry, draftId: string): void {
  const text = [client.composerDrafts.getText(draftId), entry.text].filter((part) => part !== "").join("\n\n");
  client.composerDrafts.setText(draftId, text);
  suggestText(draftId, text);
  client.composerDrafts.restoreFiles(draftId, entry.attachments);
  client.outbox.remove(entry.key);
  if (draftId === NEW_DRAFT) navigate("");
}

/** Undoes the last turn, and puts its message into an empty composer so that it can be changed. */
export async function undoTurn(id: string): Promise<void> {
  await runOnce(`undo ${id}`, async () => {
    const { facts } = await calls.undoTurn(id);
    if (typeof facts.prompt === "string") suggestText(id, facts.prompt, "if-empty");
  });
}

export async function redoTurn(id: string): Promise<void> {
  await runOnce(`redo ${id}`, () => calls.redoTurn(id));
}

/** Regenerates the answer to a message; without a number, to the last one. */
export async function retryTurn(id: string, seq: number | null = null): Promise<void> {
  await runOnce(`retry ${id}`, () => calls.retryTurn(id, seq));
}

/** Sends another version of a message in its place. */
export async function editInPlace(id: string, { seq, message }: LogEvent, text: string): Promise<boolean> {
  const files = readFiles(message?.content ?? null).map((file) => file.id);
  return attempt(() => calls.editMessage(id, seq, text, files, false));
}

/** Shows another version of a message. If its end is far from the message, the page goes to the message. */
export async function chooseVersion(client: LiveClient, id: string, seq: number, version: number): Promise<void> {
  await runOnce(`version ${id}`, async () => {
    const { facts } = await calls.chooseVersion(id, seq, version);
    await client.loadLatest(id);
    const isShown = client.state.value.conversations[id]?.events.some((event) => event.seq === facts.seq);
    if (typeof facts.seq === "number" && isShown !== true) navigate(id, { hash: String(facts.seq) });
  });
}

export async function restoreSession(client: LiveClient, id: string): Promise<void> {
  await attempt(async () => {
    const receipt = await calls.restoreSession(id);
    if (receipt.session_id !== null && receipt.session_id !== id) navigate(receipt.session_id);
    else if (receipt.reply !== null) client.addCommandReply(id, receipt.reply);
  });
}

/** Asks for a summary of the older messages. An event in the conversation tells when it is done. */
export async function compactSession(id: string): Promise<void> {
  await attempt(async () => {
    await calls.compactSession(id);
    toast(words.compactionStarted);
  });
}
