/**
 * The words and filters of the sidebar's search. They are in the address, so that a search can be linked, and is there again
 * after reloading the page or going back.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { getLocation, onLocationChange, setQuery } from "../lib/router";
import { formatSearch, parseSearch, type Search, type SearchFilters } from "./searchFilters";

const WRITE_DELAY_MS = 300; // browsers limit how often an address may change

export function useSearch() {
  const [search, setSearch] = useState(() => parseSearch(getLocation().query));
  const written = useRef(getLocation().query); // what the address says of this search
  const timer = useRef<number | undefined>(undefined);

  const write = useCallback((next: Search, replace: boolean) => {
    clearTimeout(timer.current);
    written.current = formatSearch(next);
    setQuery(written.current, { replace });
  }, []);

  useEffect(() => {
    const stop = onLocationChange(() => {
      const { query } = getLocation();
      if (query === written.current) return;
      clearTimeout(timer.current);
      written.current = query;
      setSearch(parseSearch(query));
    });
    return () => {
      stop();
      clearTimeout(timer.current);
    };
  }, []);

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

  return { ...search, setText, setFilters };
}
