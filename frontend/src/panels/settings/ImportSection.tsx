/** Chooses a file to import, and lists the imports of the last day. */
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { formatBytes } from "../../format/numbers";
import { formatRecent } from "../../format/time";
import * as calls from "../../imports/importCalls";
import { offerImport, openImport } from "../../imports/importDialog";
import { words } from "../../words";
import { QueryResult } from "../shared/QueryResult";
import { ItemList } from "./ItemList";

export function ImportSection() {
  const picker = useRef<HTMLInputElement>(null);
  const query = useQuery({ queryKey: ["imports"], queryFn: calls.listImports });
  return (
    <>
      <p className="hint">
        {words.importIntro} {query.data !== undefined && words.importMaxSize(formatBytes(query.data.max_bytes))}
      </p>
      <input
        ref={picker}
        type="file"
        accept=".zip,.json,.jsonl"
        hidden
        onChange={(event) => {
          const [file] = event.target.files ?? [];
          if (file !== undefined) offerImport(file);
          event.target.value = "";
        }}
      />
      <button type="button" className="button import-choose" onClick={() => picker.current?.click()}>
        {words.importChoose}
      </button>
      <QueryResult query={query}>
        {({ imports }) =>
          imports.length > 0 && (
            <ItemList
              label={words.recentImports}
              emptyText=""
              items={imports.map((each) => ({
                id: each.id,
                name: each.name,
                facts: `${words.importStates[each.state] ?? each.state} · ${formatRecent(each.created_at)}`,
                action: (
                  <button type="button" className="button" aria-label={words.importOpenLabel(each.name)} onClick={() => openImport(each.id)}>
                    {words.importOpen}
                  </button>
                ),
              }))}
            />
          )
        }
      </QueryResult>
    </>
  );
}
