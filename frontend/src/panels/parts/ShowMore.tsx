/** Fetches more of a list that comes page by page, as long as there is more. */
import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { words } from "../../words";

export function ShowMore({ query }: { query: UseInfiniteQueryResult }) {
  if (!query.hasNextPage) return null;
  return (
    <>
      {query.isFetchNextPageError && (
        <p className="panel-note" role="alert">
          {words.panelFailed}
        </p>
      )}
      <button type="button" className="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {words.showMore}
      </button>
    </>
  );
}
