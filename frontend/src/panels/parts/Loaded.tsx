/** What was fetched; until then that it is coming, or that it could not be fetched. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { words } from "../../words";

export function Loaded<T>({ query, children }: { query: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) {
    return (
      <p className="panel-note" role="alert">
        {words.panelFailed}{" "}
        <button type="button" className="text-button" onClick={() => void query.refetch()}>
          {words.again}
        </button>
      </p>
    );
  }
  return (
    <div className="panel-note" role="status" aria-label={words.loading}>
      <span className="spinner" />
    </div>
  );
}
