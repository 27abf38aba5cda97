/** Loads the next page of a list, if there is one. */
import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { words } from "../../words";

export function LoadMoreButton({ query }: { query: UseInfiniteQueryResult }) {
  if (!query.hasNextPage) return null;
  return (
    <>
      {query.isFetchNextPageError && (
        <p className="panel-note" role="alert">
          {words.panelLoadFailed}
        </p>
      )}
      <button type="button" className="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {words.showMore}
      </button>
    </>
  );
}
