/** The profiles and personalities that a conversation can choose. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Profiles, SessionChoices } from "../api/types";

export const NO_CHOICES: SessionChoices = { profile: null, personality: null, workspace: null };

export function useProfiles(): Profiles | undefined {
  return useQuery({ queryKey: ["profiles"], queryFn: calls.listProfiles, staleTime: 300_000 }).data;
}

/** The model of conversations with this profile; null if it is the server's default. */
export function getProfileModel(profiles: Profiles | undefined, name: string | null): string | null {
  return profiles?.profiles.find((profile) => profile.name === name)?.model ?? null;
}

/** The choices that are made, without the others: how to create a conversation with them. */
export function pickChoices({ profile, personality, workspace }: SessionChoices): Partial<Record<keyof SessionChoices, string>> {
  return {
    ...(profile !== null && { profile }),
    ...(personality !== null && { personality }),
    ...(workspace !== null && { workspace }),
  };
}
