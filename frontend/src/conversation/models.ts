/** The available models, and how much of a model's context a conversation fills. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Models, Session } from "../api/types";

export const COMPACTION_THRESHOLD = 0.85; // above it, the server compacts the context before the next answer

export interface ContextFill {
  tokens: number;
  window: number;
  share: number; // from 0 to 1
}

/** The models that a conversation can use, including the one that it has chosen. */
export function useModels(session: Session): Models | undefined {
  const chosen = session.chosen_model;
  return useQuery({ queryKey: ["models", chosen], queryFn: () => calls.listModels(chosen), staleTime: 300_000 }).data;
}

/** Null before the first answer, or if the size of the model's context is unknown. */
export function getContextFill(session: Session, models: Models | undefined): ContextFill | null {
  const tokens = session.context_tokens;
  const name = session.chosen_model ?? models?.default;
  const window = models?.models.find((each) => each.name === name)?.context_window ?? null;
  return tokens === 0 || window === null ? null : { tokens, window, share: Math.min(1, tokens / window) };
}
