/** The available models, and how much of a model's context a conversation fills. */
import { useQuery } from "@tanstack/react-query";
import { getProfileModel, useProfiles } from "../agent/profiles";
import * as calls from "../api/calls";
import type { Models, Session } from "../api/types";

export interface ContextFill {
  tokens: number;
  window: number;
  share: number; // from 0 to 1
  isNearlyFull: boolean; // the server compacts the context before the next answer
}

/** The models that a conversation can use, including the one that it has chosen; the default is that of its profile. */
export function useModels(session: Session): Models | undefined {
  const profileModel = getProfileModel(useProfiles(), session.profile);
  const include = session.chosen_model ?? profileModel;
  const { data } = useQuery({ queryKey: ["models", include], queryFn: () => calls.listModels(include), staleTime: 300_000 });
  return data === undefined ? undefined : { ...data, default: profileModel ?? data.default };
}

/** Null before the first answer, or if the size of the model's context is unknown. */
export function getContextFill(session: Session, models: Models | undefined): ContextFill | null {
  const tokens = session.context_tokens;
  const name = session.chosen_model ?? models?.default;
  const window = models?.models.find((each) => each.name === name)?.context_window ?? null;
  if (tokens === 0 || window === null) return null;
  const percent = models?.compaction_percent ?? null;
  return { tokens, window, share: Math.min(1, tokens / window), isNearlyFull: percent !== null && tokens * 100 >= percent * window };
}
