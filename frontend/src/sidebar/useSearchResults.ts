/** Searches for conversations by title and for messages by text. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { SearchHit, Session } from "../api/types";
import { useStore } from "../lib/store";
import { useDebounced } from "../lib/useDebounced";
import { useLiveClient } from "../live/context";
import { buildFilterQuery, type Search } from "./searchFilters";

const MAX_TITLES = 8;
const MAX_FILTERED = 50; // conversations of a search without words
const INDEXING_POLL_MS = 3000; // between two searches until everything is indexed
const MAX_TITLE_PAGES = 5; // the server looks at some thousand conversations for each

interface SearchState {
  sessions: readonly Session[];
  hits: readonly SearchHit[];
  error: Error | null;
  isIndexing: boolean; // some messages are not indexed yet and may be missing
  isDone: boolean; // the results are those of the text as it is now
  retry: () => void;
}

export function useSearchResults({ text, filters, everyone }: Search): SearchState {
  const all = useStore(useLiveClient().showsAll);
  const isReady = everyone === all; // a link may ask for everyone's conversations, which are shown a moment later
  const typed = text.trimStart(); // a space at the end says that the last word is complete
  const query = useDebounced(typed);
  const isEmpty = query.trim() === "";
  const filterQuery = buildFilterQuery(filters);
  const { role, person, archived, ...listFilters } = filterQuery;
  const hasFilters = Object.keys(filterQuery).length > 0;
  const findsTitles = role === undefined && (person === undefined || isEmpty); // a title has no author
  const titles = useQuery({
    queryKey: ["titles", query, listFilters, person, archived, all],
    queryFn: async () => {
      const limit = isEmpty ? MAX_FILTERED : MAX_TITLES;
      const view = { ...listFilters, all, ...(!isEmpty && { title: query }), ...(person !== undefined && { person_id: person }) };
      const states = (["active", "archived"] as const).filter((state) => archived === undefined || (archived === "only") === (state === "archived"));
      return (await Promise.all(states.map((state) => findTitles({ state, ...view }, limit)))).flat().slice(0, limit);
    },
    enabled: isReady && findsTitles && (!isEmpty || hasFilters),
    placeholderData: keepPreviousData,
  });
  const messages = useQuery({
    queryKey: ["search", query, filterQuery, all],
    queryFn: ({ signal }) => calls.searchMessages(query, filterQuery, all, signal),
    enabled: isReady && !isEmpty,
    placeholderData: keepPreviousData,
    refetchInterval: (found) => (found.state.data?.is_indexing === true ? INDEXING_POLL_MS : false),
  });
  const hasTitles = !findsTitles || (titles.isSuccess && !titles.isPlaceholderData);
  const hasMessages = isEmpty || (messages.isSuccess && !messages.isPlaceholderData);
  return {
    sessions: findsTitles ? (titles.data ?? []) : [],
    hits: isEmpty ? [] : (messages.data?.hits ?? []),
    isIndexing: !isEmpty && messages.data?.is_indexing === true,
    error: (findsTitles ? titles.error : null) ?? (isEmpty ? null : messages.error),
    isDone: hasTitles && hasMessages && query === typed,
    retry: () => void Promise.all([titles.refetch(), messages.refetch()]),
  };
}

/** A page of matching titles may be short although there are more. */
async function findTitles(view: Parameters<typeof calls.listSessions>[0], limit: number): Promise<Session[]> {
  const found: Session[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MAX_TITLE_PAGES && found.length < limit; page += 1) {
    const next = await calls.listSessions(view, cursor, limit);
    found.push(...next.sessions);
    cursor = next.next_cursor;
    if (cursor === null) break;
  }
  return found;
}
