/**
 * The messages of a conversation. Only the visible ones are rendered.
 *
 * The list stays at its end while an answer grows, unless the reader has scrolled up. Earlier messages are loaded when the
 * reader comes near them, without moving the text that they are reading.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { findProfile, useProfiles } from "../agent/profiles";
import { attempt } from "../api/attempt";
import * as calls from "../api/calls";
import { readText } from "../api/messageContent";
import type { Profile, Session } from "../api/types";
import { PendingMessage } from "../composer/PendingMessage";
import { stripMarkdown } from "../format/text";
import { formatDay, getDayKey } from "../format/time";
import { searchJump } from "../layout/searchJump";
import { navigate } from "../lib/router";
import { useStore } from "../lib/store";
import { useConversation, useLiveClient, useMe } from "../live/context";
import { describeEnd, type Conversation } from "../live/state";
import { findPendingEntries } from "../outbox/entries";
import { ArrowDownIcon } from "../ui/icons";
import { words } from "../words";
import { Answer } from "./Answer";
import { findAnswerProfiles } from "./answerProfiles";
import { findEndDelivery, findMessageTarget } from "./deliveries";
import { EventLine } from "./EventLine";
import { FoldContext } from "./Fold";
import { ALL_FOLDED, estimateTextHeight, isLongAnswer, isLongMessage, isOpen, openRows, type FoldState } from "./folding";
import { addLiveRows, buildStoredRows, findRow, makeKeysUnique, type Row } from "./rows";
import { UserMessage } from "./UserMessage";
import { useShownMatch } from "./useShownMatch";
import { findVersionPlaces, type VersionPlace } from "./versionPlaces";
import "./conversation.css";
import "./EventLine.css";

const LOAD_DISTANCE_PX = 800; // from an end; more is loaded then
const MAX_SPOKEN_CHARS = 600; // of an answer that screen readers announce
const END_THRESHOLD_PX = 60; // that still counts as the end
const SETTLE_MS = 300; // after which the list has scrolled to its first position
const FIRST_CHECK_MS = 350; // a short page may not fill the window, so more has to be loaded

interface Props {
  session: Session;
  targetSeq: number | null; // of the message that a link leads to
  canAct: boolean;
  sentCount: number; // the list scrolls to its end when a message was sent
}

export function Messages(props: Props) {
  const conversation = useConversation(props.session.id);
  return conversation === undefined ? null : <MessageList conversation={conversation} {...props} />;
}

function MessageList({ session, conversation, targetSeq, canAct, sentCount }: Props & { conversation: Conversation }) {
  const client = useLiveClient();
  const rows = useRows(session.id, conversation);
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const [isSettled, setSettled] = useState(false); // it has scrolled to its first position
  const isOffline = useStore(client.connection, (connection) => connection !== "live");
  const versionPlaces = useMemo(() => findVersionPlaces(rows), [rows]);
  const profiles = useProfiles();
  const answerProfiles = useMemo(() => findAnswerProfiles(rows, session.profile), [rows, session.profile]);
  const lastMessage = rows.findLastIndex((row) => row.kind === "message" || row.kind === "answer");

  const targetIndex = targetSeq === null ? -1 : findRow(rows, targetSeq);
  const [folds, setFolds] = useFolds(rows, rows[targetIndex]?.key ?? null);
  const foldContext = useMemo(() => ({ state: folds, onChange: setFolds }), [folds, setFolds]);

  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    getItemKey: (index) => rows[index]?.key ?? index,
    estimateSize: (index) => estimateHeight(rows[index], folds),
    overscan: 8,
    anchorTo: "end",
    followOnAppend: targetSeq === null || isSettled,
    scrollEndThreshold: END_THRESHOLD_PX,
    paddingStart: 16,
    paddingEnd: 24,
  });
  // Rows that grow above the window must not move the visible text, in whichever direction the reader scrolls.
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = ({ key, start, end }, _, { itemSizeCache, scrollOffset }) =>
    (itemSizeCache.has(key) ? end : start) <= (scrollOffset ?? 0);

  useLayoutEffect(() => {
    if (targetIndex >= 0) virtualizer.scrollToIndex(targetIndex, { align: "center" });
    else virtualizer.scrollToEnd();
    // Only once for each target; the list keeps its position afterwards.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [virtualizer, session.id, targetSeq]);

  const jump = useStore(searchJump);
  const isJumpTarget = jump !== null && jump.sessionId === session.id && jump.seq === targetSeq;
  useShownMatch(scroller, isJumpTarget ? jump : null, (pixels) =>
    virtualizer.scrollToOffset((scroller.current?.scrollTop ?? 0) + pixels),
  );

  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), SETTLE_MS);
    return () => clearTimeout(timer);
  }, []);

  const checkPosition = () => {
    const element = scroller.current;
    if (element === null) return;
    const below = element.scrollHeight - element.scrollTop - element.clientHeight;
    setAtEnd(below < END_THRESHOLD_PX && !conversation.moreAfter);
    if (!isSettled) return;
    if (element.scrollTop < LOAD_DISTANCE_PX && conversation.moreBefore) void client.loadEarlier(session.id).catch(() => undefined);
    if (below < LOAD_DISTANCE_PX && conversation.moreAfter) void client.loadLater(session.id).catch(() => undefined);
  };

  useEffect(() => {
    const timer = setTimeout(checkPosition, FIRST_CHECK_MS);
    return () => clearTimeout(timer);
  });

  useMarkRead(session, isAtEnd);

  const scrollToEnd = (behavior: "auto" | "smooth") => {
    if (targetSeq !== null) navigate(session.id, { replace: true });
    if (!conversation.moreAfter) virtualizer.scrollToEnd({ behavior });
    else void attempt(() => client.loadLatest(session.id)).then(() => requestAnimationFrame(() => virtualizer.scrollToEnd()));
  };

  useEffect(() => {
    if (sentCount > 0) scrollToEnd("auto");
    // Only when a message was sent.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [sentCount]);

  return (
    <div className="messages">
      <div className="scroller" ref={scroller} onScroll={checkPosition} tabIndex={0} role="region" aria-label={words.conversationLog}>
        <FoldContext value={foldContext}>
          <div className="rows" style={{ height: virtualizer.getTotalSize() }}>
            {virtualizer.getVirtualItems().map((item) => {
              const row = rows[item.index];
              return row === undefined ? null : (
                <div
                  key={row.key} // not `item.key`: the virtualizer may still have the key of another row at this index
                  ref={virtualizer.measureElement}
                  data-index={item.index}
                  className={item.index === targetIndex ? "row target" : "row"}
                  style={{ transform: `translateY(${item.start}px)` }}
                >
                  <RowView
                    row={row}
                    versions={versionPlaces.get(row.key)}
                    profile={findProfile(profiles, answerProfiles.get(row.key) ?? null)}
                    session={session}
                    isLast={item.index === lastMessage}
                    canAct={canAct}
                    isOffline={isOffline}
                    conversation={conversation}
                    isFirst={item.index === 0 && !conversation.moreBefore}
                  />
                </div>
              );
            })}
          </div>
        </FoldContext>
      </div>
      <AnswerAnnouncement rows={rows} />
      {(!isAtEnd || conversation.moreAfter) && (
        <button type="button" className="jump-button" onClick={() => scrollToEnd(prefersReducedMotion() ? "auto" : "smooth")}>
          <ArrowDownIcon />
          {session.running ? words.newMessagesBelow : words.jumpToLatest}
        </button>
      )}
    </div>
  );
}

/** Which long texts are open. */
function useFolds(rows: readonly Row[], targetKey: string | null): [FoldState, (state: FoldState) => void] {
  const [state, setState] = useState(ALL_FOLDED);
  const next = openRows(state, rows, targetKey);
  if (next !== state) setState(next);
  return [next, setState];
}

function useRows(id: string, conversation: Conversation): readonly Row[] {
  const client = useLiveClient();
  const me = useMe();
  const entries = useStore(client.outbox.entries);
  const stored = useMemo(() => buildStoredRows(conversation.events, getDayKey), [conversation.events]);
  const pending = useMemo(() => {
    const ownEntries = entries.filter((entry) => entry.session === id);
    return findPendingEntries(ownEntries, conversation.events, me.person.id);
  }, [entries, conversation.events, id, me.person.id]);
  return useMemo(() => makeKeysUnique(addLiveRows(stored, conversation, pending)), [conversation, pending, stored]);
}

/** Marks a conversation as read while its end is visible. */
function useMarkRead(session: Session, isAtEnd: boolean): void {
  const client = useLiveClient();
  useEffect(() => {
    if (!isAtEnd || session.read_seq >= session.last_seq) return;
    const markIfVisible = () => {
      if (document.visibilityState === "visible") void client.markRead(session.id);
    };
    markIfVisible();
    document.addEventListener("visibilitychange", markIfVisible);
    return () => document.removeEventListener("visibilitychange", markIfVisible);
  }, [client, isAtEnd, session.id, session.last_seq, session.read_seq]);
}

/** Announces a finished answer to screen readers. */
function AnswerAnnouncement({ rows }: { rows: readonly Row[] }) {
  const last = rows.findLast((row) => row.kind === "answer");
  const [awaitedKey, setAwaitedKey] = useState<string | null>(null);
  if (last?.running && last.key !== awaitedKey) setAwaitedKey(last.key);
  const isFinished = last !== undefined && !last.running && last.key === awaitedKey;
  const text = isFinished ? last.parts.flatMap((part) => (part.kind === "text" ? part.text : [])).join(" ") : "";
  return (
    <div className="visually-hidden" role="status">
      {isFinished && `${words.agent}: ${stripMarkdown(text.slice(0, MAX_SPOKEN_CHARS))}`}
    </div>
  );
}

interface RowProps {
  row: Row;
  versions: VersionPlace | undefined; // that can be stepped through here
  profile: Profile | undefined; // that has given this answer
  session: Session;
  isFirst: boolean;
  isLast: boolean;
  canAct: boolean;
  isOffline: boolean;
  conversation: Conversation;
}

function RowView({ row, versions, profile, session, isLast, isFirst, canAct, isOffline, conversation }: RowProps) {
  switch (row.kind) {
    case "day":
      return (
        <div className="day" role="separator" title={isFirst ? words.conversationStart : undefined}>
          <span>{formatDay(row.at)}</span>
        </div>
      );
    case "message":
      return (
        <UserMessage
          sessionId={session.id}
          rowKey={row.key}
          event={row.event}
          isShared={session.shared}
          canAct={canAct}
          isAnswering={session.running}
          versions={versions}
          alsoSentTo={findMessageTarget(conversation, row.event.seq)}
        />
      );
    case "answer":
      return (
        <Answer
          sessionId={session.id}
          row={row}
          isShared={session.shared}
          isLast={isLast}
          canAct={canAct && !session.running}
          canResend={canAct}
          notice={row.running ? conversation.notice : null}
          endNotice={isLast && !row.running ? describeEnd(conversation) : ""}
          versions={versions}
          profile={profile}
          deliveries={conversation.deliveries}
        />
      );
    case "event":
      return (
        <EventLine
          sessionId={session.id}
          event={row.event}
          canAct={row.isLatest && canAct}
          delivery={findEndDelivery(conversation, row.event)}
          canResend={canAct}
        />
      );
    case "waiting":
      return (
        <div className="event-line waiting">
          <span>{row.turn.is_steering ? words.willSteer : words.queuedBehind(row.ahead)}</span>
          {row.ahead === 1 && canAct && (
            <button type="button" className="text-button" onClick={() => void attempt(() => calls.stopTurn(session.id, true))}>
              {words.stopAndClearQueue}
            </button>
          )}
        </div>
      );
    case "pending":
      return (
        <PendingMessage
          entry={row.entry}
          draftId={session.id}
          isOffline={isOffline}
          alsoSentTo={row.entry.reply === "origin" ? session.platform : null}
        />
      );
  }
}

function estimateHeight(row: Row | undefined, folds: FoldState): number {
  if (row?.kind === "message") {
    const text = readText(row.event.message?.content ?? null);
    return 64 + estimateTextHeight(text, isLongMessage(text) && !isOpen(folds, row.key, 0));
  }
  if (row?.kind !== "answer") return 44;
  const heights = row.parts.map((part, index) =>
    part.kind === "text" ? estimateTextHeight(part.text, isLongAnswer(part.text) && !isOpen(folds, row.key, index)) : 26,
  );
  return heights.reduce((sum, height) => sum + height, 60);
}

function prefersReducedMotion(): boolean {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
