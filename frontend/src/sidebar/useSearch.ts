/**
 * The words and filters of the sidebar's search. They are in the address, so that a search can be linked, and is there again
 * after reloading the page or going back.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { whenPersonLeaves } from "../lib/personal";
import { getLocation, onLocationChange, setQuery } from "../lib/router";
import { useLiveClient, useMe } from "../live/context";
import { formatSearch, parseSearch, type Search, type SearchFilters } from "./searchFilters";

const WRITE_DELAY_MS = 300; // browsers limit how often an address may change

whenPersonLeaves(() => setQuery("", { replace: true }));

export function useSearch() {
  const client = useLiveClient();
  const isOwner = useMe().person.role === "owner";
  const readSearch = useCallback(
    (query: string): Search => {
      const found = parseSearch(query);
      const isLinked = isOwner && formatSearch(found) !== "";
      return { ...found, everyone: isLinked ? found.everyone : client.showsAll.value };
    },
    [client, isOwner],
  );
  const [search, setSearch] = useState(() => readSearch(getLocation().query));
  const written = useRef(getLocation().query); // what the address says of this search
  const timer = useRef<number | undefined>(undefined);

  const write = useCallback(
    (next: Search, replace: boolean) => {
      clearTimeout(timer.current);
      written.current = formatSearch({ ...next, everyone: client.showsAll.value });
      setQuery(written.current, { replace });
    },
    [client],
  );

  useEffect(() => {
    /** A linked search of everyone's conversations finds the same again. */
    const showEveryone = () => {
      const { everyone } = readSearch(written.current);
      if (everyone !== client.showsAll.value) client.setShowsAll(everyone);
    };
    const stopLocation = onLocationChange(() => {
      const { query } = getLocation();
      if (query === written.current) return;
      clearTimeout(timer.current);
      written.current = query;
      setSearch(readSearch(query));
      showEveryone();
    });
    showEveryone();
    const stopEveryone = client.showsAll.subscribe(() => {
      const everyone = client.showsAll.value;
      setSearch((before) => (before.everyone === everyone ? before : { ...before, everyone }));
      const shown = readSearch(written.current);
      if (shown.everyone !== everyone) write(shown, true);
    });
    return () => {
      stopLocation();
      stopEveryone();
      clearTimeout(timer.current);
    };
  }, [client, readSearch, write]);

  /** Beginning or ending a search is a step back in the history of the browser, typing is none. */
  const setText = (text: string) => {
    const next = { ...search, text };
    setSearch(next);
    clearTimeout(timer.current);
    const isStep = (formatSearch(next) === "") !== (written.current === "");
    timer.current = window.setTimeout(() => write(next, !isStep), WRITE_DELAY_MS);
  };

  const setFilters = (filters: SearchFilters) => {
    const next = { ...search, filters };
    setSearch(next);
    write(next, false);
  };

  return { search, setText, setFilters };
}
