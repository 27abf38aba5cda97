/** Tells whoever looks elsewhere that an answer is ready: in the title of the tab, and by notices where they are wanted. */
import { useEffect, useMemo } from "react";
import { sessionAt, useHere, whereWeAre } from "../lib/router";
import { useStore } from "../lib/store";
import { countInTitle } from "../lib/title";
import type { Center } from "../live/center";
import { useCenter, useSessions } from "../live/context";
import { unreadCount } from "./answered";
import { heedClicks, notices, tellOf, type Notices } from "./notices";

const LOCK = "palaver-notices";
const A_MOMENT = 1000; // milliseconds in which whoever looks at an answer has read it, on whatever device
const itself = (value: Notices) => value;

export function Ready() {
  const center = useCenter();
  const isOn = useStore(notices, itself) === "on";
  useEffect(() => (isOn ? tellingOf(center) : undefined), [center, isOn]);
  useEffect(heedClicks, []);
  useUnreadInTitle(center);
  return null;
}

function useUnreadInTitle(center: Center): void {
  const sessions = useSessions();
  const open = sessionAt(useHere())?.id ?? null;
  const isOwn = useStore(center.everybodys, (all) => !all);
  const isSeen = document.visibilityState === "visible";
  const count = useMemo(
    () => (isOwn ? unreadCount(sessions.values(), center.since, isSeen ? open : null) : 0),
    [sessions, center, isOwn, isSeen, open],
  );
  useEffect(() => countInTitle(count), [count]);
}

/** Tell of answers, as the one tab that does; ends with the function it gives. */
function tellingOf(center: Center): () => void {
  const over = new AbortController();
  const telling = async () => {
    center.keepLine(true);
    const stop = center.onAnswered((id) => setTimeout(() => !over.signal.aborted && tellIfUnread(center, id), A_MOMENT));
    await new Promise((resolve) => over.signal.addEventListener("abort", resolve));
    stop();
    center.keepLine(false);
  };
  navigator.locks.request(LOCK, { signal: over.signal }, telling).catch(() => undefined); // it ended before its turn came
  return () => over.abort();
}

function tellIfUnread(center: Center, id: string): void {
  const session = center.state.value.sessions.get(id);
  const isLookedAt = document.visibilityState === "visible" && sessionAt(whereWeAre())?.id === id;
  if (session === undefined || isLookedAt || session.read_seq >= session.last_seq || center.everybodys.value) return;
  void tellOf(session);
}
