/** The centre, in components. */
import { createContext, useCallback, useContext } from "react";
import type { Session } from "../api/types";
import { useStore } from "../lib/store";
import type { Center } from "./center";
import type { Conversation, State } from "./state";

export const CenterContext = createContext<Center | null>(null);

export function useCenter(): Center {
  const center = useContext(CenterContext);
  if (center === null) throw new Error("this is shown to nobody who is signed in");
  return center;
}

export function useSessions(): State["sessions"] {
  return useStore(useCenter().state, (state) => state.sessions);
}

export function useSession(id: string): Session | undefined {
  return useStore(
    useCenter().state,
    useCallback((state: State) => state.sessions.get(id), [id]),
  );
}

export function useConversation(id: string): Conversation | undefined {
  return useStore(
    useCenter().state,
    useCallback((state: State) => state.conversations[id], [id]),
  );
}
