/** The actions for a message: copy, branch, and copy its link. */
import type { ReactNode } from "react";
import { buildHref } from "../lib/router";
import { useLiveClient } from "../live/context";
import { forkSession } from "../sessions/actions";
import { copyText } from "../ui/clipboard";
import { CopyButton } from "../ui/CopyButton";
import { BranchIcon, LinkIcon } from "../ui/icons";
import { toast } from "../ui/toasts";
import { words } from "../words";

interface Props {
  sessionId: string;
  seq: number;
  text: string;
  canFork: boolean;
  children?: ReactNode;
}

export function MessageActions({ sessionId, seq, text, canFork, children }: Props) {
  const client = useLiveClient();
  const copyLink = () => copyText(new URL(buildHref(sessionId, String(seq)), location.href).href);
  return (
    <div className="message-actions">
      {text !== "" && <CopyButton text={text} />}
      {children}
      {canFork && (
        <button
          type="button"
          className="icon-button small"
          title={words.branchFromHere}
          aria-label={words.branchFromHere}
          onClick={() => void forkSession(client, sessionId, seq)}
        >
          <BranchIcon />
        </button>
      )}
      <button
        type="button"
        className="icon-button small"
        title={words.copyLink}
        aria-label={words.copyLink}
        onClick={() => void copyLink().then((isCopied) => isCopied && toast(words.linkCopied))}
      >
        <LinkIcon />
      </button>
    </div>
  );
}
