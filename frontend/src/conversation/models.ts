/** The models there are, and how much of one a conversation fills. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Models, Session } from "../api/types";

export const NEARLY_FULL = 0.85; // beyond that the server summarises by itself before the next answer

export interface Fill {
  tokens: number;
  window: number;
  share: number; // 1 is full
}

/** The models a conversation may choose, the one that it has chosen among them. */
export function useModels(session: Session): Models | undefined {
  const chosen = session.chosen_model;
  return useQuery({ queryKey: ["models", chosen], queryFn: () => calls.models(chosen), staleTime: 300_000 }).data;
}

/** How full a conversation is; null when nothing was counted yet, or nobody knows how much its model takes. */
export function fillOf(session: Session, models: Models | undefined): Fill | null {
  const tokens = session.context_tokens;
  const name = session.chosen_model ?? models?.default;
  const window = models?.models.find((each) => each.name === name)?.context_window ?? null;
  return tokens === 0 || window === null ? null : { tokens, window, share: Math.min(1, tokens / window) };
}
