/** An event of a conversation other than a message, with a button to undo it where that is possible. */
import { useState, type ReactNode } from "react";
import type { Delivery, LogEvent } from "../api/types";
import { describeFailure } from "../format/errors";
import { getPlatformName } from "../format/platforms";
import { formatDateTime, formatTime } from "../format/time";
import { useLiveClient, useMe } from "../live/context";
import { Markdown } from "../markdown/Markdown";
import { redoTurn, restoreSession, retryTurn, updateSessions } from "../sessions/actions";
import { Link } from "../ui/Link";
import { words } from "../words";
import { DeliveryStatus } from "./DeliveryStatus";
import { describeInterruption } from "./interruptions";
import { JobProposal } from "./JobProposal";
import { buildRevert, describeChange } from "./settingChanges";
import "./EventLine.css";

interface Props {
  sessionId: string;
  event: LogEvent;
  canAct: boolean; // the reader takes part, and nothing follows that makes it outdated
  delivery: Delivery | undefined; // of the notice that a turn ended without an answer
  canResend: boolean; // a delivery that failed
}

export function EventLine({ sessionId, event, canAct, delivery, canResend }: Props) {
  const { facts } = event;
  const me = useMe();
  const buildLine = (text: string, action: ReactNode = null, isError = false) => (
    <div className={isError ? "event-line is-error" : "event-line"} title={formatDateTime(event.at)}>
      <span dir="auto">{text}</span>
      {action}
      <time dateTime={event.at}>{formatTime(event.at)}</time>
      {delivery !== undefined && <DeliveryStatus sessionId={sessionId} delivery={delivery} canResend={canResend} />}
    </div>
  );
  const retryButton = canAct && <ActionButton label={words.regenerate} act={() => retryTurn(sessionId)} />;
  switch (event.kind) {
    case "started":
      return buildLine(describeStart(facts), <SessionLink id={facts.previous} label={getStartLinkLabel(facts.reason)} />);
    case "ended":
      return buildLine(facts.reason === "daily" ? words.endedDaily : words.endedIdle);
    case "reopened":
      return buildLine(words.reopened);
    case "undone":
      return buildLine(
        words.turnsUndone(Number(facts.turns ?? 1)),
        canAct && <ActionButton label={words.redo} act={() => redoTurn(sessionId)} />,
      );
    case "forked":
      return buildLine(words.branchCreated, <SessionLink id={facts.fork_id} label={words.openBranch} />);
    case "turn_interrupted":
      return buildLine(describeInterruption(event, me.person.id), retryButton);
    case "turn_failed": {
      const canFix = me.person.role === "owner" || typeof facts.reason_for_others !== "string" || facts.code === "budget_exceeded";
      return (
        <div className="event-block">
          {buildLine(
            canFix ? describeTurnFailure(facts) : words.answerFailedBecause(words.ownerCanFix),
            <>
              {retryButton}
              {facts.code === "budget_exceeded" && me.person.role === "owner" && (
                <Link className="text-button" to="budget">
                  {words.budgetRaise}
                </Link>
              )}
            </>,
            true,
          )}
          {canFix && <ProviderMessage facts={facts} />}
        </div>
      );
    }
    case "compacted":
      return <Summary event={event} sessionId={sessionId} />;
    case "compaction_undone":
      return buildLine(words.compactionUndone);
    case "unreadable":
      return buildLine(words.unreadableEntry, null, true);
    case "erased":
      return buildLine(words.messageErased, null, true);
    case "answer_resent":
      return buildLine(words.answerResent(getPlatformOf(facts)));
    case "setting_changed":
      return buildLine(describeChange(facts), canAct && <RevertButton sessionId={sessionId} facts={facts} />);
    case "message_edited":
      return (
        <div className="event-block">
          {buildLine(words.messageEdited(getPlatformOf(facts)))}
          <PreviousText facts={facts} />
        </div>
      );
    case "message_deleted":
      return buildLine(words.messageDeleted(getPlatformOf(facts)));
    case "reaction":
      return buildLine(describeReaction(facts));
    case "job_proposed":
      return <JobProposal event={event} isOpen={canAct} />;
    case "job_confirmed":
      return buildLine(words.jobConfirmed(typeof facts.name === "string" ? facts.name : ""));
    case "job_rejected":
      return buildLine(words.jobRejected(typeof facts.name === "string" ? facts.name : ""));
    case "members_changed":
      return buildLine(describeMembers(facts));
    default:
      return null;
  }
}

function getPlatformOf({ platform }: Record<string, unknown>): string {
  return typeof platform === "string" ? getPlatformName(platform) : "–";
}

function describeReaction({ author, emoji, removed }: Record<string, unknown>): string {
  const name = typeof author === "string" ? author : "";
  const shown = typeof emoji === "string" ? emoji : "";
  return removed === true ? words.reactionRemoved(name, shown) : words.reactionAdded(name, shown);
}

function describeMembers({ joined, left }: Record<string, unknown>): string {
  const join = (names: unknown) => (Array.isArray(names) ? names.filter((name) => typeof name === "string").join(", ") : "");
  const lines = [join(joined) && words.membersJoined(join(joined)), join(left) && words.membersLeft(join(left))];
  return lines.filter((line) => line !== "").join(" ");
}

/** What a message said before its author edited it. */
function PreviousText({ facts: { previous_text: text } }: { facts: Record<string, unknown> }) {
  if (typeof text !== "string" || text === "") return null;
  return (
    <details className="provider-message">
      <summary>{words.showPreviousText}</summary>
      <pre dir="auto">{text}</pre>
    </details>
  );
}

function describeTurnFailure(facts: Record<string, unknown>): string {
  const why = describeFailure(facts);
  return why === null ? words.answerFailed : words.answerFailedBecause(why);
}

/** What the provider itself said about a failure, folded. */
function ProviderMessage({ facts }: { facts: Record<string, unknown> }) {
  const { model, status, detail } = facts;
  if (typeof detail !== "string") return null;
  const head = [model, typeof status === "number" ? `HTTP ${status}` : null].filter((part) => typeof part === "string").join(" · ");
  return (
    <details className="provider-message">
      <summary>{words.failureDetails}</summary>
      {head !== "" && <p>{head}</p>}
      <pre dir="auto">{detail}</pre>
    </details>
  );
}

function Summary({ event, sessionId }: { event: LogEvent; sessionId: string }) {
  const client = useLiveClient();
  const [isShown, setShown] = useState(false);
  const { summary, message_count: messageCount, omitted_count: omittedCount } = event.facts;
  const hasSummary = typeof summary === "string" && summary !== "";
  const count = Number(messageCount ?? 0);
  return (
    <div className="event-block">
      <div className="event-line" title={formatDateTime(event.at)}>
        <span>{Number(omittedCount ?? 0) > 0 ? words.contextOmitted(count) : words.contextCompacted(count)}</span>
        {hasSummary && (
          <button type="button" className="text-button" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
            {words.showSummary}
          </button>
        )}
        <ActionButton label={words.undoCompaction} act={() => restoreSession(client, sessionId)} />
      </div>
      {isShown && hasSummary && (
        <div className="summary">
          <Markdown text={summary} />
        </div>
      )}
    </div>
  );
}

/** Sets a setting back to its previous value. */
function RevertButton({ sessionId, facts }: { sessionId: string; facts: Record<string, unknown> }) {
  const client = useLiveClient();
  const patch = buildRevert(facts);
  return patch === null ? null : <ActionButton label={words.undo} act={() => updateSessions(client, [sessionId], patch)} />;
}

function ActionButton({ label, act }: { label: string; act: () => Promise<unknown> }) {
  const [isBusy, setBusy] = useState(false);
  return (
    <button
      type="button"
      className="text-button"
      disabled={isBusy}
      onClick={() => {
        setBusy(true);
        void act().finally(() => setBusy(false));
      }}
    >
      {label}
    </button>
  );
}

function SessionLink({ id, label }: { id: unknown; label: string }) {
  return typeof id === "string" ? (
    <Link className="text-button" to={id}>
      {label}
    </Link>
  ) : null;
}

function describeStart(facts: Record<string, unknown>): string {
  const { reason, copied_count: copiedCount, is_rest: isRest, is_shortened: isShortened } = facts;
  if (reason === "idle") return words.startedIdle;
  if (reason === "daily") return words.startedDaily;
  if (reason === "fork" && isRest === true) return words.startedRest;
  if (reason === "fork" && isShortened === true) return words.startedShortenedFork;
  if (reason === "fork") return copiedCount === 0 ? words.startedEmptyFork : words.startedFork;
  return words.startedManual;
}

function getStartLinkLabel(reason: unknown): string {
  return reason === "fork" ? words.openOriginal : words.openPrevious;
}
