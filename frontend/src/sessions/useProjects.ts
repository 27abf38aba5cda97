/** The projects of a person: folders for conversations. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Project } from "../api/types";

const PROJECTS_KEY = ["projects"];
export const PROJECTS_NOT_LOADED: readonly Project[] = []; // the value until then

export const PROJECT_COLORS = ["#1f6f64", "#2b6cb0", "#6d4fc2", "#b83268", "#b7791f", "#5a7d1f", "#5b6675", "#b4472a"] as const;

export function useProjects(): readonly Project[] {
  return (
    useQuery({ queryKey: PROJECTS_KEY, queryFn: calls.listProjects, staleTime: 30_000 }).data?.projects ?? PROJECTS_NOT_LOADED
  );
}

/** A function that loads the projects again after a change. */
export function useRefreshProjects(): () => Promise<void> {
  const queryClient = useQueryClient();
  return () => queryClient.invalidateQueries({ queryKey: PROJECTS_KEY });
}
