/** The agent's answer in one turn, finished or still running: text, reasoning and tools. */
import { memo } from "react";
import { ProfilePicture } from "../agent/ProfilePicture";
import { getProfileTitle } from "../agent/profiles";
import type { Profile } from "../api/types";
import { formatDateTime, formatDuration, formatTime } from "../format/time";
import type { Conversation } from "../live/state";
import { Markdown } from "../markdown/Markdown";
import { retryTurn } from "../sessions/actions";
import { RetryIcon } from "../ui/icons";
import { words } from "../words";
import { listAnswerDeliveries } from "./deliveries";
import { DeliveryStatus } from "./DeliveryStatus";
import { Fold } from "./Fold";
import { isLongAnswer } from "./folding";
import { MessageActions } from "./MessageActions";
import { SpeakButton } from "./SpeakButton";
import { Reasoning } from "./Reasoning";
import type { AnswerRow } from "./rows";
import { SentByLabel } from "./SentByLabel";
import { ToolCard } from "./ToolCard";
import { VersionSwitch } from "./VersionSwitch";
import type { VersionPlace } from "./versionPlaces";
import "../composer/message.css";
import "./Answer.css";
import "./ToolCard.css";

interface Props {
  sessionId: string;
  row: AnswerRow;
  isShared: boolean; // several people see the conversation
  isLast: boolean; // no message follows
  canAct: boolean;
  canResend: boolean; // a delivery that failed
  notice: string | null;
  endNotice: string; // about the end of the answer; empty if there is none
  versions: VersionPlace | undefined; // of the message that it answers
  profile?: Profile | undefined; // that has given it
  deliveries: Conversation["deliveries"]; // all of the conversation: the same object until one of them changes
}

export const Answer = memo(function Answer({ sessionId, row, isShared, isLast, canAct, canResend, notice, endNotice, versions, profile, deliveries }: Props) {
  const lastIndex = row.parts.length - 1;
  const last = row.parts[lastIndex];
  const isWaiting = row.running && (last === undefined || (last.kind === "tool" && last.result !== null));
  const text = row.parts.flatMap((part) => (part.kind === "text" ? part.text : [])).join("\n\n");
  const seq = row.seqs.at(-1);
  return (
    <article className="answer" aria-label={words.agent} aria-busy={row.running}>
      {row.sentBy !== null && <SentByLabel sentBy={row.sentBy} isShared={isShared} />}
      {profile?.picture != null && (
        <p className="sent-by profile-name" dir="auto">
          <ProfilePicture url={profile.picture} />
          {getProfileTitle(profile)}
        </p>
      )}
      {row.parts.map((part, index) => {
        const isGrowing = row.running && index === lastIndex;
        if (part.kind === "tool") return <ToolCard key={index} tool={part} isRunning={row.running} />;
        if (part.kind === "reasoning") return <Reasoning key={index} text={part.text} isRunning={isGrowing} />;
        return (
          <Fold key={index} rowKey={row.key} part={index} isLong={!row.running && isLongAnswer(part.text)}>
            <Markdown text={part.text} />
          </Fold>
        );
      })}
      {isWaiting && (
        <div className="waiting-dots" role="status" aria-label={words.working}>
          <i />
          <i />
          <i />
          {notice !== null && <span>{notice}</span>}
        </div>
      )}
      {endNotice !== "" && (
        <p className="answer-end" role="note">
          {endNotice}
        </p>
      )}
      {!row.running && seq !== undefined && (
        <div className={isLast ? "message-foot shown" : "message-foot"}>
          {listAnswerDeliveries(deliveries, row).map((delivery) => (
            <DeliveryStatus key={delivery.id} sessionId={sessionId} delivery={delivery} canResend={canResend} />
          ))}
          {row.interrupted && <span className="tag">{words.answerStopped}</span>}
          {versions !== undefined && <VersionSwitch sessionId={sessionId} place={versions} canAct={canAct} />}
          <MessageActions sessionId={sessionId} seq={seq} text={text} canFork={canAct}>
            {text !== "" && <SpeakButton sessionId={sessionId} seq={seq} />}
            {canAct && row.sentBy === null && (isLast || row.answers !== null) && (
              <button
                type="button"
                className="icon-button small"
                title={words.regenerate}
                aria-label={words.regenerate}
                onClick={() => void retryTurn(sessionId, row.answers)}
              >
                <RetryIcon />
              </button>
            )}
          </MessageActions>
          {row.at !== null && (
            <time dateTime={row.at} title={formatDateTime(row.at)}>
              {formatTime(row.at)}
            </time>
          )}
          {row.durationMs !== null && <span className="duration">{words.answerDuration(formatDuration(row.durationMs))}</span>}
        </div>
      )}
    </article>
  );
});
