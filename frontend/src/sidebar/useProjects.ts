/** Projects: a person's own folders. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Project } from "../api/types";

const KEY = ["projects"];
export const UNKNOWN: readonly Project[] = []; // until they have come

export const COLOURS = ["#1f6f64", "#2b6cb0", "#6d4fc2", "#b83268", "#b7791f", "#5a7d1f", "#5b6675", "#b4472a"] as const;

export function useProjects(): readonly Project[] {
  return useQuery({ queryKey: KEY, queryFn: calls.projects, staleTime: 30_000 }).data?.projects ?? UNKNOWN;
}

/** A function that fetches them again after a change. */
export function useProjectsAgain(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: KEY });
}
