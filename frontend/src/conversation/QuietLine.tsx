/** What else happened in a conversation, said quietly, with a way to take it back where there is one. */
import { useState, type ReactNode } from "react";
import type { Delivery, LogEvent } from "../api/types";
import { Link } from "../lib/Link";
import { clock, moment } from "../lib/time";
import { useCenter } from "../live/context";
import { Markdown } from "../markdown/Markdown";
import { platformName } from "../sidebar/naming";
import { words } from "../words";
import { change, redo, restore, retry } from "./actions";
import { changeBack, changeText } from "./changes";
import { Delivered } from "./Delivered";

interface Props {
  session: string;
  event: LogEvent;
  latest: boolean; // nothing was said after it
  delivery: Delivery | undefined; // of a turn that ended without an answer, where that was told somewhere
  maySend: boolean; // what did not arrive, again
}

export function QuietLine({ session, event, latest, delivery, maySend }: Props) {
  const { facts } = event;
  const line = (text: string, action: ReactNode = null, serious = false) => (
    <div className={serious ? "quiet serious" : "quiet"} title={moment(event.at)}>
      <span dir="auto">{text}</span>
      {action}
      <time dateTime={event.at}>{clock(event.at)}</time>
      {delivery !== undefined && <Delivered session={session} delivery={delivery} mayAct={maySend} />}
    </div>
  );
  const again = latest && <Act label={words.retry} act={() => retry(session)} />;
  switch (event.kind) {
    case "started":
      return line(startText(facts.reason), <To id={facts.previous} label={startLink(facts.reason)} />);
    case "reopened":
      return line(words.reopened);
    case "undone":
      return line(
        words.undone(Number(facts.turns ?? 1)),
        latest && <Act label={words.redo} act={() => redo(session)} />,
      );
    case "forked":
      return line(words.wasForked, <To id={facts.into} label={words.toCopy} />);
    case "interrupted":
      return line(typeof facts.reason === "string" ? words.interruptedWhy(facts.reason) : words.interrupted, again);
    case "failed":
      return line(typeof facts.reason === "string" ? words.failedWhy(facts.reason) : words.failedTurn, again, true);
    case "compacted":
      return <Summary event={event} session={session} />;
    case "expanded":
      return line(words.expanded);
    case "resent":
      return line(words.resent(typeof facts.to === "string" ? platformName(facts.to) : "–"));
    case "changed":
      return line(changeText(facts), latest && <Back session={session} facts={facts} />);
    default:
      return null;
  }
}

function Summary({ event, session }: { event: LogEvent; session: string }) {
  const center = useCenter();
  const [isShown, setShown] = useState(false);
  const { summary, messages } = event.facts;
  return (
    <div className="quiet-block">
      <div className="quiet" title={moment(event.at)}>
        <span>{words.compacted(Number(messages ?? 0))}</span>
        <button type="button" className="text-button" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
          {words.showSummary}
        </button>
        <Act label={words.restore} act={() => restore(center, session)} />
      </div>
      {isShown && typeof summary === "string" && (
        <div className="summary">
          <Markdown text={summary} />
        </div>
      )}
    </div>
  );
}

/** Takes a change of settings back to what held before. */
function Back({ session, facts }: { session: string; facts: Record<string, unknown> }) {
  const center = useCenter();
  const back = changeBack(facts);
  return back === null ? null : <Act label={words.takeBack} act={() => change(center, [session], back)} />;
}

function Act({ label, act }: { label: string; act: () => Promise<unknown> }) {
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

function To({ id, label }: { id: unknown; label: string }) {
  return typeof id === "string" ? (
    <Link className="text-button" to={id}>
      {label}
    </Link>
  ) : null;
}

function startText(reason: unknown): string {
  if (reason === "idle") return words.startedIdle;
  if (reason === "daily") return words.startedDaily;
  return reason === "fork" ? words.startedFork : words.startedManual;
}

function startLink(reason: unknown): string {
  return reason === "fork" ? words.toOriginal : words.toPrevious;
}
