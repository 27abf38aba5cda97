/** The words and filters of a search, how they are written in an address, and what they mean for a request. Pure. */
import type { SearchFilterQuery } from "../api/calls";

export interface SearchFilters {
  platform: string;
  role: string;
  person: string; // an id
  project: string; // an id
  from: string; // a day, as in 2026-01-31
  to: string; // the last day
  archived: string; // "only" or "without"
}

export type FilterName = keyof SearchFilters;

export interface Search {
  text: string;
  filters: SearchFilters;
  everyone: boolean; // an owner searches the conversations of all people
}

export const NO_FILTERS: SearchFilters = { platform: "", role: "", person: "", project: "", from: "", to: "", archived: "" };
export const FILTER_NAMES = Object.keys(NO_FILTERS) as FilterName[];

const MAX_TEXT_CHARS = 1000;
const DAY = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const SHORT_TEXT = /^[^\p{Cc}]{1,200}$/u;
const ROLES = ["user", "assistant", "tool"] as const;
const ARCHIVED = ["only", "without"] as const;
const VALID_VALUES: Record<FilterName, RegExp> = {
  platform: /^[\w-]{1,64}$/,
  role: RegExp(`^(${ROLES.join("|")})$`),
  person: SHORT_TEXT,
  project: SHORT_TEXT,
  from: DAY,
  to: DAY,
  archived: RegExp(`^(${ARCHIVED.join("|")})$`),
};

export function listActiveFilters(filters: SearchFilters): FilterName[] {
  return FILTER_NAMES.filter((name) => filters[name] !== "");
}

export function countFilters(filters: SearchFilters): number {
  return listActiveFilters(filters).length;
}

/** Reads a search from the query string of an address. People can type anything there, so what is not valid is left out. */
export function parseSearch(query: string): Search {
  const params = new URLSearchParams(query);
  const filters = { ...NO_FILTERS };
  for (const name of FILTER_NAMES) {
    const value = params.get(name) ?? "";
    if (VALID_VALUES[name].test(value)) filters[name] = value;
  }
  return { text: (params.get("q") ?? "").slice(0, MAX_TEXT_CHARS), filters, everyone: params.get("everyone") === "1" };
}

/** Writes a search as a query string; empty if there is none. */
export function formatSearch({ text, filters, everyone }: Search): string {
  const params = new URLSearchParams();
  if (text.trim() !== "") params.set("q", text.slice(0, MAX_TEXT_CHARS));
  for (const name of listActiveFilters(filters)) params.set(name, filters[name]);
  if (everyone && params.size > 0) params.set("everyone", "1");
  return params.toString();
}

/** Days begin at midnight on the reader's clock. */
export function buildFilterQuery({ platform, role, person, project, from, to, archived }: SearchFilters): SearchFilterQuery {
  return {
    ...(platform !== "" && { platform }),
    ...(isOneOf(role, ROLES) && { role }),
    ...(person !== "" && { person }),
    ...(project !== "" && { project }),
    ...(from !== "" && { after: startOfDay(from) }),
    ...(to !== "" && { before: startOfDay(to, 1) }),
    ...(isOneOf(archived, ARCHIVED) && { archived }),
  };
}

function isOneOf<Value extends string>(text: string, values: readonly Value[]): text is Value {
  return values.some((value) => value === text);
}

function startOfDay(day: string, daysLater = 0): string {
  const [year = 1970, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date + daysLater).toISOString();
}
