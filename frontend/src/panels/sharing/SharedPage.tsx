/** A shared copy, as whoever has its link reads it. Nobody has to be signed in. */
import { useQuery } from "@tanstack/react-query";
import { ApiError } from "../../api/client";
import { useHere } from "../../lib/router";
import { moment } from "../../lib/time";
import { useTitle } from "../../lib/title";
import { Markdown } from "../../markdown/Markdown";
import { Written } from "../../markdown/Written";
import { words } from "../../words";
import * as calls from "../calls";
import type { Shared } from "../calls";
import { Loaded } from "../parts/Loaded";
import "../parts/parts.css";
import "./shared.css";

export default function SharedPage() {
  const secret = useHere().hash;
  const query = useQuery({
    queryKey: ["shared", secret],
    queryFn: () => calls.readShared(secret),
    enabled: secret !== "",
    staleTime: Infinity, // a copy never changes
  });
  const isGone = secret === "" || (query.error instanceof ApiError && query.error.status < 429); // what is broken or busy may come yet
  return (
    <main className="shared-page" tabIndex={-1}>
      <div className="shared-column">{isGone ? <Gone /> : <Loaded query={query}>{(copy) => <Copy copy={copy} />}</Loaded>}</div>
    </main>
  );
}

function Copy({ copy }: { copy: Shared }) {
  const title = copy.title ?? words.shared;
  useTitle(title);
  return (
    <>
      <header>
        <h1 dir="auto">{title}</h1>
        <p className="hint">{words.sharedOn(moment(copy.shared_at))}</p>
      </header>
      {copy.messages.map((message, place) =>
        message.role === "assistant" ? (
          <article key={place} className="answer" aria-label={words.agent}>
            <Markdown text={message.text} />
          </article>
        ) : (
          <article key={place} className="said">
            {message.name !== null && <div className="author">{message.name}</div>}
            <Written text={message.text} />
          </article>
        ),
      )}
    </>
  );
}

function Gone() {
  return (
    <div className="panel-empty">
      <h1>{words.sharedGone}</h1>
      <p>{words.sharedGoneText}</p>
    </div>
  );
}
