/** Searches for conversations by title and for messages by text. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { SearchHit, Session } from "../api/types";
import { useStore } from "../lib/store";
import { useDebounced } from "../lib/useDebounced";
import { useLiveClient } from "../live/context";
import { buildFilterQuery, type SearchFilters } from "./searchFilters";

const MAX_TITLES = 8;
const MAX_TITLE_PAGES = 5; // the server looks at some thousand conversations for each

interface SearchState {
  sessions: readonly Session[];
  hits: readonly SearchHit[];
  error: Error | null;
  isDone: boolean; // the results are those of the text as it is now
  retry: () => void;
}

export function useSearchResults(text: string, filters: SearchFilters): SearchState {
  const all = useStore(useLiveClient().showsAll);
  const typed = text.trimStart(); // a space at the end says that the last word is complete
  const query = useDebounced(typed);
  const isEmpty = query.trim() === "";
  const filterQuery = buildFilterQuery(filters);
  const { role, ...listFilters } = filterQuery;
  const titles = useQuery({
    queryKey: ["titles", query, listFilters, all],
    queryFn: async () => {
      const find = (state: "active" | "archived") => findTitles({ state, title: query, ...listFilters, all });
      return (await Promise.all([find("active"), find("archived")])).flat().slice(0, MAX_TITLES);
    },
    enabled: !isEmpty && role === undefined, // nobody writes a title
    placeholderData: keepPreviousData,
  });
  const messages = useQuery({
    queryKey: ["search", query, filterQuery, all],
    queryFn: ({ signal }) => calls.searchMessages(query, filterQuery, all, signal),
    enabled: !isEmpty,
    placeholderData: keepPreviousData,
  });
  const hasTitles = role !== undefined || (titles.isSuccess && !titles.isPlaceholderData);
  return {
    sessions: role === undefined ? (titles.data ?? []) : [],
    hits: messages.data?.hits ?? [],
    error: titles.error ?? messages.error,
    isDone: hasTitles && messages.isSuccess && !messages.isPlaceholderData && query === typed,
    retry: () => void Promise.all([titles.refetch(), messages.refetch()]),
  };
}

/** A page of matching titles may be short although there are more. */
async function findTitles(view: Parameters<typeof calls.listSessions>[0]): Promise<Session[]> {
  const found: Session[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MAX_TITLE_PAGES && found.length < MAX_TITLES; page += 1) {
    const next = await calls.listSessions(view, cursor, MAX_TITLES);
    found.push(...next.sessions);
    cursor = next.next_cursor;
    if (cursor === null) break;
  }
  return found;
}
