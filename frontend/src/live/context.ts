/** The centre, and whoever it is for, in components. */
import { createContext, useCallback, useContext } from "react";
import type { Me, Session } from "../api/types";
import { useStore } from "../lib/store";
import type { Center } from "./center";
import type { Conversation, State } from "./state";

export const CenterContext = createContext<Center | null>(null);

export function useCenter(): Center {
  const center = useContext(CenterContext);
  if (center === null) throw new Error("this is shown to nobody who is signed in");
  return center;
}

/** Whoever is signed in, and a way to ask the server again who that is. */
export interface Myself {
  me: Me;
  again: () => Promise<unknown>;
}

export const MyselfContext = createContext<Myself | null>(null);

export function useMyself(): Myself {
  const myself = useContext(MyselfContext);
  if (myself === null) throw new Error("this is shown to nobody who is signed in");
  return myself;
}

export function useMe(): Me {
  return useMyself().me;
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
