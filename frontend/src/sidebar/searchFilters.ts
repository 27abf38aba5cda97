/** The filters of a search, and what they mean for a request. Pure. */
import type { SearchFilterQuery } from "../api/calls";

export interface SearchFilters {
  platform: string;
  role: string;
  project: string;
  from: string; // a day, as in 2026-01-31
  to: string; // the last day
}

export const NO_FILTERS: SearchFilters = { platform: "", role: "", project: "", from: "", to: "" };

export function countFilters(filters: SearchFilters): number {
  return Object.values(filters).filter((value) => value !== "").length;
}

/** Days begin at midnight on the reader's clock. */
export function buildFilterQuery({ platform, role, project, from, to }: SearchFilters): SearchFilterQuery {
  return {
    ...(platform !== "" && { platform }),
    ...(role !== "" && { role }),
    ...(project !== "" && { project }),
    ...(from !== "" && { after: startOfDay(from) }),
    ...(to !== "" && { before: startOfDay(to, 1) }),
  };
}

function startOfDay(day: string, daysLater = 0): string {
  const [year = 1970, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date + daysLater).toISOString();
}
