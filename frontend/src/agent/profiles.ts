/** The profiles and personalities that a conversation can choose. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Profile, Profiles, SessionChoices } from "../api/types";

export const NO_CHOICES: SessionChoices = { profile: null, personality: null, workspace: null };

export function useProfiles(): Profiles | undefined {
  return useQuery({ queryKey: ["profiles"], queryFn: calls.listProfiles, staleTime: 300_000 }).data;
}

/** The profile with this name; undefined if the reader can't choose it, or the server no longer has it. */
export function findProfile(profiles: Profiles | undefined, name: string | null): Profile | undefined {
  return profiles?.profiles.find((profile) => profile.name === name);
}

/** The name that people see. */
export function getProfileTitle({ title, name }: Profile): string {
  return title === "" ? name : title;
}

/** The model of conversations with this profile; null if it is the server's default. */
export function getProfileModel(profiles: Profiles | undefined, name: string | null): string | null {
  return findProfile(profiles, name)?.model ?? null;
}

/** The choices that are made, without the others: how to create a conversation with them. */
export function pickChoices({ profile, personality, workspace }: SessionChoices): Partial<Record<keyof SessionChoices, string>> {
  return {
    ...(profile !== null && { profile }),
    ...(personality !== null && { personality }),
    ...(workspace !== null && { workspace }),
  };
}
