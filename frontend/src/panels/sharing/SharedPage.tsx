/** A shared copy of a conversation. Everybody with the link can read it without signing in. */
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/types";
import { ApiError } from "../../api/errors";
import { formatDateTime } from "../../format/time";
import { useDocumentTitle } from "../../lib/documentTitle";
import { useLocation } from "../../lib/router";
import { Markdown } from "../../markdown/Markdown";
import UserText from "../../markdown/UserText";
import { words } from "../../words";
import * as calls from "../shared/calls";
import { QueryResult } from "../shared/QueryResult";
import "../shared/panels.css";
import "../../composer/message.css";
import "./shared.css";

export default function SharedPage() {
  const secret = useLocation().hash;
  const query = useQuery({
    queryKey: ["shared", secret],
    queryFn: () => calls.getSharedCopy(secret),
    enabled: secret !== "",
    staleTime: Infinity, // a copy never changes
  });
  const isMissing = secret === "" || (query.error instanceof ApiError && query.error.status < 429); // a busy or failing server may still have it
  const isExpired = query.error instanceof ApiError && query.error.code === "share_expired";
  return (
    <main className="shared-page" tabIndex={-1}>
      <div className="shared-column">{isMissing ? <MissingCopy isExpired={isExpired} /> : <QueryResult query={query}>{(copy) => <SharedCopyView copy={copy} />}</QueryResult>}</div>
    </main>
  );
}

function SharedCopyView({ copy }: { copy: Schemas["SharedConversationJson"] }) {
  const title = copy.title ?? words.sharedConversation;
  useDocumentTitle(title);
  return (
    <>
      <header>
        <h1 dir="auto">{title}</h1>
        <p className="hint">{words.sharedOn(formatDateTime(copy.shared_at))}</p>
      </header>
      {copy.messages.map((message, index) =>
        message.role === "assistant" ? (
          <article key={index} className="answer" aria-label={words.agent}>
            <div className="author">{words.agent}</div>
            <Markdown text={message.text} />
          </article>
        ) : (
          <article key={index} className="user-message" aria-label={message.name ?? undefined}>
            {message.name !== null && <div className="author">{message.name}</div>}
            <UserText text={message.text} />
          </article>
        ),
      )}
    </>
  );
}

function MissingCopy({ isExpired }: { isExpired: boolean }) {
  const title = isExpired ? words.sharedExpired : words.sharedNotFound;
  useDocumentTitle(title);
  return (
    <div className="panel-empty" role="alert">
      <h1>{title}</h1>
      <p>{isExpired ? words.sharedExpiredHint : words.sharedNotFoundHint}</p>
    </div>
  );
}
