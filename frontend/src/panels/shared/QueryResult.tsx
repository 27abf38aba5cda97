/** Shows the result of a query, a spinner until it has loaded, or an error with a retry button. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { words } from "../../words";

export function QueryResult<T>({ query, children }: { query: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) {
    return (
      <p className="panel-note" role="alert">
        {words.panelLoadFailed}{" "}
        <button type="button" className="text-button" onClick={() => void query.refetch()}>
          {words.tryAgain}
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
