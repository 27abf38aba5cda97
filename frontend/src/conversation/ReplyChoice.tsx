/** Where what is written here is answered: on this page, or also where the conversation takes place. */
import { useState } from "react";
import type { ReplyTo, Session } from "../api/types";
import { keep, recall } from "../lib/keep";
import { platformName } from "../sidebar/naming";
import { PlatformSign } from "../ui/PlatformBadge";
import { Segmented } from "../ui/Segmented";
import { words } from "../words";

/** What was chosen for a conversation, remembered in this browser. */
export function useReply({ id, reachable }: Session): [ReplyTo, (reply: ReplyTo) => void] {
  const name = `reply.${id}`;
  const [chosen, setChosen] = useState<ReplyTo>(recall(name) === "there" ? "there" : "here");
  const choose = (reply: ReplyTo) => {
    keep(name, reply === "there" ? reply : null);
    setChosen(reply);
  };
  return [reachable ? chosen : "here", choose];
}

interface Props {
  session: Session;
  value: ReplyTo;
  onChange: (reply: ReplyTo) => void;
}

export function ReplyChoice({ session, value, onChange }: Props) {
  const platform = platformName(session.platform);
  const place = session.source.chat_name === null ? platform : `${platform} · ${session.source.chat_name}`;
  return (
    <div className="where reply-choice" title={value === "here" ? words.replyHereHint(platform) : words.replyThereHint(platform)}>
      <span aria-hidden="true">{words.replyGoes}</span>
      <Segmented<ReplyTo>
        label={words.replyGoes}
        value={value}
        onChange={onChange}
        choices={[
          ["here", words.replyGoesHere],
          [
            "there",
            <>
              <PlatformSign platform={session.platform} />
              <bdi>{place}</bdi>
            </>,
          ],
        ]}
      />
    </div>
  );
}
