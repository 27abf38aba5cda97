/** What the agent said and did in one turn; also while it is still at it. */
import { memo } from "react";
import type { Delivery } from "../api/types";
import { clock, lasted, moment } from "../lib/time";
import { Markdown } from "../markdown/Markdown";
import { RetryIcon } from "../ui/icons";
import { words } from "../words";
import { retry } from "./actions";
import { Delivered } from "./Delivered";
import { MessageActions } from "./MessageActions";
import { Reasoning } from "./Reasoning";
import type { AnswerRow } from "./rows";
import { ToolCard } from "./ToolCard";

interface Props {
  session: string;
  row: AnswerRow;
  isLast: boolean; // nothing was said after it
  mayAct: boolean;
  maySend: boolean; // what did not arrive, again
  notice: string | null;
  delivery: Delivery | undefined; // where it is sent somewhere
}

export const Answer = memo(function Answer({ session, row, isLast, mayAct, maySend, notice, delivery }: Props) {
  const lastPlace = row.parts.length - 1;
  const last = row.parts[lastPlace];
  const isSilent = row.running && (last === undefined || (last.kind === "tool" && last.result !== null));
  const text = row.parts.flatMap((part) => (part.kind === "text" ? part.text : [])).join("\n\n");
  const seq = row.seqs.at(-1);
  return (
    <article className="answer" aria-label={words.agent} aria-busy={row.running}>
      {row.parts.map((part, place) => {
        const isGrowing = row.running && place === lastPlace;
        if (part.kind === "tool") return <ToolCard key={place} tool={part} running={row.running} />;
        if (part.kind === "reasoning") return <Reasoning key={place} text={part.text} running={isGrowing} />;
        return <Markdown key={place} text={part.text} />;
      })}
      {isSilent && (
        <div className="waiting-dots" role="status" aria-label={words.working}>
          <i />
          <i />
          <i />
          {notice !== null && <span>{notice}</span>}
        </div>
      )}
      {!row.running && seq !== undefined && (
        <div className={isLast ? "message-foot shown" : "message-foot"}>
          {delivery !== undefined && <Delivered session={session} delivery={delivery} mayAct={maySend} />}
          {row.interrupted && <span className="tag">{words.stopped}</span>}
          <MessageActions session={session} seq={seq} text={text} mayFork={mayAct}>
            {isLast && mayAct && (
              <button
                type="button"
                className="icon-button small"
                title={words.retry}
                aria-label={words.retry}
                onClick={() => void retry(session)}
              >
                <RetryIcon />
              </button>
            )}
          </MessageActions>
          {row.at !== null && (
            <time dateTime={row.at} title={moment(row.at)}>
              {clock(row.at)}
            </time>
          )}
          {row.took !== null && <span className="lasted">{words.worked(lasted(row.took))}</span>}
        </div>
      )}
    </article>
  );
});
