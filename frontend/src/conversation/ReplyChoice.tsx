/** Chooses where an answer goes: only to this page, or also to the platform of the conversation. */
import { useState } from "react";
import type { ReplyTo, Session } from "../api/types";
import { getPlatformName } from "../format/platforms";
import { storage } from "../lib/storage";
import { PlatformIcon } from "../ui/PlatformBadge";
import { SegmentedControl } from "../ui/SegmentedControl";
import { words } from "../words";
import "./ReplyChoice.css";

/** The choice for a conversation. This browser remembers it. */
export function useReplyTarget({ id, reachable }: Session): [ReplyTo, (reply: ReplyTo) => void] {
  const storageKey = `reply.${id}`;
  const [chosen, setChosen] = useState<ReplyTo>(storage.get(storageKey) === "origin" ? "origin" : "session");
  const choose = (reply: ReplyTo) => {
    storage.set(storageKey, reply === "origin" ? reply : null);
    setChosen(reply);
  };
  return [reachable ? chosen : "session", choose];
}

interface Props {
  session: Session;
  value: ReplyTo;
  onChange: (reply: ReplyTo) => void;
}

export function ReplyChoice({ session, value, onChange }: Props) {
  const platform = getPlatformName(session.platform);
  const origin = session.source.chat_name === null ? platform : `${platform} · ${session.source.chat_name}`;
  return (
    <div
      className="composer-note reply-choice"
      title={value === "session" ? words.replyHereHint(platform) : words.replyThereHint(platform)}
    >
      <span aria-hidden="true">{words.replyTarget}</span>
      <SegmentedControl<ReplyTo>
        label={words.replyTarget}
        value={value}
        onChange={onChange}
        choices={[
          ["session", words.replyTargetHere],
          [
            "origin",
            <>
              <PlatformIcon platform={session.platform} />
              <bdi>{origin}</bdi>
            </>,
          ],
        ]}
      />
    </div>
  );
}
