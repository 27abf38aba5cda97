/** What is new in the running version. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { ErrorBoundary, LoadError } from "../../ui/ErrorBoundary";
import { words } from "../../words";
import * as calls from "../shared/calls";
import { QueryResult } from "../shared/QueryResult";

const Markdown = lazy(async () => ({ default: (await import("../../markdown/Markdown")).Markdown })); // a third of the panel

export function UpdateNotes() {
  const [isOpen, setOpen] = useState(false);
  const query = useQuery({ queryKey: ["update-notes"], queryFn: calls.getUpdateNotes, enabled: isOpen, staleTime: Infinity });
  return (
    <details className="update-notes" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words.updateNotes}</summary>
      {isOpen && (
        <ErrorBoundary fallback={<LoadError />}>
          <Suspense>
            <QueryResult query={query}>
              {({ text }) => (text === "" ? <p className="panel-note">{words.updateNotesEmpty}</p> : <Notes text={text} />)}
            </QueryResult>
          </Suspense>
        </ErrorBoundary>
      )}
    </details>
  );
}

function Notes({ text }: { text: string }) {
  return (
    <>
      {words.updateNotesLanguage !== "" && <p className="hint">{words.updateNotesLanguage}</p>}
      <div lang="en">
        <Markdown text={text} />
      </div>
    </>
  );
}
