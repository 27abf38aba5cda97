/** React hooks for the live client and for the account that is signed in. */
import { createContext, useCallback, useContext } from "react";
import type { Me, Session } from "../api/types";
import { useStore } from "../lib/store";
import type { LiveClient } from "./liveClient";
import type { Conversation, State } from "./state";

export const LiveClientContext = createContext<LiveClient | null>(null);

export function useLiveClient(): LiveClient {
  const client = useContext(LiveClientContext);
  if (client === null) throw new Error("this component needs a signed-in account");
  return client;
}

/** The account that is signed in, and a function that loads it again after a change. */
export interface Account {
  me: Me;
  refetch: () => Promise<unknown>;
}

export const AccountContext = createContext<Account | null>(null);

export function useAccount(): Account {
  const account = useContext(AccountContext);
  if (account === null) throw new Error("this component needs a signed-in account");
  return account;
}

export function useMe(): Me {
  return useAccount().me;
}

export function useSessions(): State["sessions"] {
  return useStore(useLiveClient().state, (state) => state.sessions);
}

export function useSession(id: string): Session | undefined {
  return useStore(
    useLiveClient().state,
    useCallback((state: State) => state.sessions.get(id), [id]),
  );
}

export function useConversation(id: string): Conversation | undefined {
  return useStore(
    useLiveClient().state,
    useCallback((state: State) => state.conversations[id], [id]),
  );
}
