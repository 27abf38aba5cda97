/**
 * The messages of a conversation: as many as the window shows, however many there are.
 *
 * The list keeps to its end while an answer grows, unless somebody has scrolled away from it; what comes before is
 * fetched when they come near, without moving what they read.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import * as calls from "../api/calls";
import type { Session } from "../api/types";
import { go } from "../lib/router";
import { useStore } from "../lib/store";
import { dayKey, dayName } from "../lib/time";
import { useCenter, useConversation, useMe } from "../live/context";
import type { Conversation } from "../live/state";
import { stillPending, type Entry } from "../outbox/entries";
import { plain } from "../sidebar/naming";
import { ArrowDownIcon } from "../ui/icons";
import { words } from "../words";
import { attempt } from "./actions";
import { Answer } from "./Answer";
import { deliveryOf, deliveryOfEnd, goesAlongTo } from "./delivered";
import { Pending } from "./Pending";
import { QuietLine } from "./QuietLine";
import { liveRows, rowOf, storedRows, withKeysOnce, type Row } from "./rows";
import { Said } from "./Said";

const NEAR = 800; // pixels from an end at which more is fetched
const SPOKEN = 600; // characters of an answer that are read aloud by themselves
const AT_END = 60; // pixels that still count as the end

interface Props {
  session: Session;
  target: number | null; // the message a link leads to
  mayAct: boolean;
  said: number; // how often something was said here: whoever says something sees it
}

const every = (entries: readonly Entry[]) => entries;

export function Messages(props: Props) {
  const known = useConversation(props.session.id);
  return known === undefined ? null : <List known={known} {...props} />;
}

function List({ session, known, target, mayAct, said }: Props & { known: Conversation }) {
  const center = useCenter();
  const rows = useRows(session.id, known);
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const [isSettled, setSettled] = useState(false); // the first place has been found
  const isOffline = useStore(center.connection, (connection) => connection !== "live");
  const lastAnswer = rows.findLastIndex((row) => row.kind === "said" || row.kind === "answer");

  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    getItemKey: (index) => rows[index]?.key ?? index,
    estimateSize: (index) => estimated(rows[index]),
    overscan: 8,
    anchorTo: "end",
    followOnAppend: target === null || isSettled,
    scrollEndThreshold: AT_END,
    paddingStart: 16,
    paddingEnd: 24,
  });
  // What grows above the window must not move what is read in it, whichever way somebody scrolls.
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = ({ key, start, end }, _, { itemSizeCache, scrollOffset }) =>
    (itemSizeCache.has(key) ? end : start) <= (scrollOffset ?? 0);

  const place = target === null ? -1 : rowOf(rows, target);
  useLayoutEffect(() => {
    if (place >= 0) virtualizer.scrollToIndex(place, { align: "center" });
    else virtualizer.scrollToEnd();
    // Only once for each place; what grows later moves by itself.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [virtualizer, session.id, target]);

  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), 300);
    return () => clearTimeout(timer);
  }, []);

  const look = () => {
    const element = scroller.current;
    if (element === null) return;
    const below = element.scrollHeight - element.scrollTop - element.clientHeight;
    setAtEnd(below < AT_END && !known.moreAfter);
    if (!isSettled) return;
    if (element.scrollTop < NEAR && known.moreBefore) void center.loadEarlier(session.id).catch(() => undefined);
    if (below < NEAR && known.moreAfter) void center.loadLater(session.id).catch(() => undefined);
  };

  useEffect(() => {
    const timer = setTimeout(look, 350); // a short page may not fill the window
    return () => clearTimeout(timer);
  });

  useSeen(session, isAtEnd);

  const toEnd = (behavior: "auto" | "smooth") => {
    if (target !== null) go(session.id, { replace: true });
    if (!known.moreAfter) virtualizer.scrollToEnd({ behavior });
    else void attempt(() => center.toLatest(session.id)).then(() => requestAnimationFrame(() => virtualizer.scrollToEnd()));
  };

  useEffect(() => {
    if (said > 0) toEnd("auto");
    // Only when something was said.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [said]);

  return (
    <div className="messages">
      <div className="scroller" ref={scroller} onScroll={look} tabIndex={0} role="region" aria-label={words.conversationLog}>
        <div className="rows" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const row = rows[item.index];
            return row === undefined ? null : (
              <div
                key={row.key} // its own: the virtualizer may remember an older one for this place
                ref={virtualizer.measureElement}
                data-index={item.index}
                className={item.index === place ? "row target" : "row"}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <OneRow
                  row={row}
                  session={session}
                  isLast={item.index === lastAnswer}
                  mayAct={mayAct}
                  isOffline={isOffline}
                  known={known}
                  isFirst={item.index === 0 && !known.moreBefore}
                />
              </div>
            );
          })}
        </div>
      </div>
      <Announcement rows={rows} />
      {(!isAtEnd || known.moreAfter) && (
        <button type="button" className="to-end" onClick={() => toEnd(reducesMotion() ? "auto" : "smooth")}>
          <ArrowDownIcon />
          {session.running ? words.newBelow : words.jumpToLatest}
        </button>
      )}
    </div>
  );
}

function useRows(id: string, known: Conversation): readonly Row[] {
  const center = useCenter();
  const me = useMe();
  const entries = useStore(center.outbox.entries, every);
  const stored = useMemo(() => storedRows(known.events, dayKey), [known.events]);
  const pending = useMemo(() => {
    const here = entries.filter((entry) => entry.session === id);
    return stillPending(here, known.events, me.person.id);
  }, [entries, known.events, id, me.person.id]);
  return useMemo(() => withKeysOnce([...stored, ...liveRows(known, pending, stored)]), [known, pending, stored]);
}

/** Whoever looks at the end of a conversation has read it. */
function useSeen(session: Session, isAtEnd: boolean): void {
  const center = useCenter();
  useEffect(() => {
    if (!isAtEnd || session.read_seq >= session.last_seq) return;
    const look = () => {
      if (document.visibilityState === "visible") void center.markRead(session.id);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [center, isAtEnd, session.id, session.last_seq, session.read_seq]);
}

/** Tells those who do not see the page that an answer is there, and what it says. */
function Announcement({ rows }: { rows: readonly Row[] }) {
  const last = rows.findLast((row) => row.kind === "answer");
  const [awaited, setAwaited] = useState<string | null>(null);
  if (last?.running && last.key !== awaited) setAwaited(last.key);
  const isThere = last !== undefined && !last.running && last.key === awaited;
  const text = isThere ? last.parts.flatMap((part) => (part.kind === "text" ? part.text : [])).join(" ") : "";
  return (
    <div className="visually-hidden" role="status">
      {isThere && `${words.agent}: ${plain(text.slice(0, SPOKEN))}`}
    </div>
  );
}

interface RowProps {
  row: Row;
  session: Session;
  isFirst: boolean;
  isLast: boolean;
  mayAct: boolean;
  isOffline: boolean;
  known: Conversation;
}

function OneRow({ row, session, isLast, isFirst, mayAct, isOffline, known }: RowProps) {
  switch (row.kind) {
    case "day":
      return (
        <div className="day" role="separator" title={isFirst ? words.beginning : undefined}>
          <span>{dayName(row.at)}</span>
        </div>
      );
    case "said":
      return (
        <Said
          session={session.id}
          event={row.event}
          shared={session.shared}
          mayAct={mayAct}
          goesTo={goesAlongTo(known, row.event.seq)}
        />
      );
    case "answer":
      return (
        <Answer
          session={session.id}
          row={row}
          isLast={isLast}
          mayAct={mayAct && !session.running}
          maySend={mayAct}
          notice={row.running ? known.notice : null}
          delivery={deliveryOf(known, row)}
        />
      );
    case "quiet":
      return (
        <QuietLine
          session={session.id}
          event={row.event}
          latest={row.latest && mayAct}
          delivery={deliveryOfEnd(known, row.event)}
          maySend={mayAct}
        />
      );
    case "waiting":
      return (
        <div className="quiet">
          <span>{row.turn.steers ? words.steersSoon : words.waitsBehind(row.ahead)}</span>
          {row.ahead === 1 && mayAct && (
            <button type="button" className="text-button" onClick={() => void attempt(() => calls.stop(session.id, true))}>
              {words.stopAll}
            </button>
          )}
        </div>
      );
    case "pending":
      return (
        <Pending
          entry={row.entry}
          place={session.id}
          isOffline={isOffline}
          goesTo={row.entry.reply === "there" ? session.platform : null}
        />
      );
  }
}

function estimated(row: Row | undefined): number {
  if (row?.kind === "said") return 90;
  if (row?.kind !== "answer") return 44;
  const length = row.parts.reduce((sum, part) => sum + (part.kind === "text" ? part.text.length : 60), 0);
  return 60 + Math.ceil(length / 80) * 26;
}

function reducesMotion(): boolean {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
