/** What can be done with any message. */
import type { ReactNode } from "react";
import { addressOf } from "../lib/router";
import { useCenter } from "../live/context";
import { CopyButton } from "../ui/CopyButton";
import { copy } from "../ui/copying";
import { BranchIcon, LinkIcon } from "../ui/icons";
import { toast } from "../ui/toasts";
import { words } from "../words";
import { fork } from "./actions";

interface Props {
  session: string;
  seq: number;
  text: string;
  mayFork: boolean;
  children?: ReactNode;
}

export function MessageActions({ session, seq, text, mayFork, children }: Props) {
  const center = useCenter();
  const link = () => copy(new URL(addressOf(session, String(seq)), location.href).href);
  return (
    <div className="message-actions">
      {text !== "" && <CopyButton text={text} />}
      {children}
      {mayFork && (
        <button
          type="button"
          className="icon-button small"
          title={words.forkHere}
          aria-label={words.forkHere}
          onClick={() => void fork(center, session, seq)}
        >
          <BranchIcon />
        </button>
      )}
      <button
        type="button"
        className="icon-button small"
        title={words.copyLink}
        aria-label={words.copyLink}
        onClick={() => void link().then((isDone) => isDone && toast(words.linkCopied))}
      >
        <LinkIcon />
      </button>
    </div>
  );
}
