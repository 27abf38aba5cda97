/** Tells people who look elsewhere that an answer is ready: in the title of the tab and, if switched on, by notifications. */
import { useEffect, useMemo } from "react";
import { setUnreadCountInTitle } from "../lib/documentTitle";
import { getLocation, parseSessionLocation, useLocation } from "../lib/router";
import { storage } from "../lib/storage";
import { useStore } from "../lib/store";
import { useLiveClient, useMe, useSessions } from "../live/context";
import type { LiveClient } from "../live/liveClient";
import { countUnread } from "../sessions/unread";
import { closeNotification, followNotificationClicks, notificationState, notifyAnswer, PUSH_STORAGE_KEY } from "./browserNotifications";

const LOCK_NAME = "palaver-notifications";
const READ_DELAY_MS = 1000; // time for another device that shows the answer to mark it as read

export function AnswerNotifier() {
  const client = useLiveClient();
  const isOn = useStore(notificationState) === "on";
  useEffect(() => (isOn ? watchAnswers(client) : undefined), [client, isOn]);
  useEffect(followNotificationClicks, []);
  const personId = useMe().person.id;
  useEffect(() => void restorePush(personId).catch(() => undefined), [personId]); // tried again when the page is opened the next time
  useUnreadCountInTitle(client);
  return null;
}

/** Loads what it needs only in browsers in which the person has switched push on. */
async function restorePush(personId: string): Promise<void> {
  if (storage.get(PUSH_STORAGE_KEY) !== personId) return;
  await (await import("./pushSubscription")).restorePush(personId);
}

function useUnreadCountInTitle(client: LiveClient): void {
  const sessions = useSessions();
  const openId = parseSessionLocation(useLocation())?.id ?? null;
  const isOwn = useStore(client.showsAll, (all) => !all);
  const isVisible = document.visibilityState === "visible";
  const count = useMemo(
    () => (isOwn ? countUnread(sessions.values(), client.firstVisitAt, isVisible ? openId : null) : 0),
    [sessions, client, isOwn, isVisible, openId],
  );
  useEffect(() => {
    setUnreadCountInTitle(count);
    setAppBadge(count);
    const onVisible = () => document.visibilityState === "visible" && setAppBadge(count); // the service worker may have changed it
    document.addEventListener("visibilitychange", onVisible);
    return () => document.removeEventListener("visibilitychange", onVisible);
  }, [count]);
  useEffect(() => {
    if (openId === null) return undefined;
    const close = () => document.visibilityState === "visible" && void closeNotification(openId);
    close();
    document.addEventListener("visibilitychange", close);
    return () => document.removeEventListener("visibilitychange", close);
  }, [openId]);
}

/** Notifies of answers in the one tab that holds the lock. Returns a function that stops it. */
function watchAnswers(client: LiveClient): () => void {
  const abort = new AbortController();
  const notify = async () => {
    client.keepStreamOpen(true);
    const stop = client.onAnswerEnd((id) => setTimeout(() => !abort.signal.aborted && notifyIfUnread(client, id), READ_DELAY_MS));
    await new Promise((resolve) => abort.signal.addEventListener("abort", resolve));
    stop();
    client.keepStreamOpen(false);
  };
  navigator.locks.request(LOCK_NAME, { signal: abort.signal }, notify).catch(() => undefined); // it was stopped before it got the lock
  return () => abort.abort();
}

function notifyIfUnread(client: LiveClient, id: string): void {
  const session = client.state.value.sessions.get(id);
  const isOpen = document.visibilityState === "visible" && parseSessionLocation(getLocation())?.id === id;
  if (session === undefined || isOpen || session.read_seq >= session.last_seq || client.showsAll.value) return;
  void notifyAnswer(session);
}

/** Shows the number of unread conversations on the icon of the installed app; other browsers show nothing. */
function setAppBadge(count: number): void {
  if (!("setAppBadge" in navigator)) return;
  (count === 0 ? navigator.clearAppBadge() : navigator.setAppBadge(count)).catch(() => undefined);
}
