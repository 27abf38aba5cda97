/** The people whose messages the reader can search: those in the reader's own conversations, or in all that are shown. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import { useStore } from "../lib/store";
import { useLiveClient } from "../live/context";

const FRESH_MS = 60_000;
const NO_PEOPLE: readonly { id: string; name: string }[] = [];

export function useSearchPeople(isNeeded: boolean) {
  const all = useStore(useLiveClient().showsAll);
  const query = useQuery({
    queryKey: ["search-people", all],
    queryFn: () => calls.listSearchPeople(all),
    enabled: isNeeded,
    staleTime: FRESH_MS,
  });
  return query.data?.people ?? NO_PEOPLE;
}
