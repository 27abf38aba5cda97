/** What is new in the running version. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Markdown } from "../../markdown/Markdown";
import { words } from "../../words";
import * as calls from "../shared/calls";
import { QueryResult } from "../shared/QueryResult";

export function UpdateNotes() {
  const [isOpen, setOpen] = useState(false);
  const query = useQuery({ queryKey: ["update-notes"], queryFn: calls.getUpdateNotes, enabled: isOpen, staleTime: Infinity });
  return (
    <details className="update-notes" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words.updateNotes}</summary>
      {isOpen && (
        <QueryResult query={query}>
          {({ text }) => (text === "" ? <p className="panel-note">{words.updateNotesEmpty}</p> : <Markdown text={text} />)}
        </QueryResult>
      )}
    </details>
  );
}
