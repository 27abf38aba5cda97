/** The active filters of a search, one chip each. A chip is removed by clicking it, or with Enter, Delete or Backspace. */
import type { KeyboardEvent } from "react";
import { formatDate } from "../format/days";
import { getPlatformName } from "../format/platforms";
import { useProjects } from "../sessions/useProjects";
import { CloseIcon } from "../ui/icons";
import { words } from "../words";
import { listActiveFilters, NO_FILTERS, type FilterName, type SearchFilters } from "./searchFilters";
import { useSearchPeople } from "./useSearchPeople";
import "./filters.css";

interface Props {
  filters: SearchFilters;
  onChange: (filters: SearchFilters) => void;
}

export function FilterChips({ filters, onChange }: Props) {
  const names = listActiveFilters(filters);
  const describe = useFilterDescriptions(filters);
  if (names.length === 0) return null;
  const remove = (name: FilterName) => {
    onChange({ ...filters, [name]: "" });
    const next = names[names.indexOf(name) + 1] ?? names[names.indexOf(name) - 1];
    document.getElementById(next === undefined ? "search" : buildChipId(next))?.focus(); // the chip with the focus goes away
  };
  const removeByKey = (event: KeyboardEvent, name: FilterName) => {
    if (event.key !== "Delete" && event.key !== "Backspace") return;
    event.preventDefault();
    remove(name);
  };
  return (
    <div className="filter-chips" role="group" aria-label={words.filtersActive(names.length)}>
      {names.map((name) => (
        <button
          key={name}
          id={buildChipId(name)}
          type="button"
          className="chip-button filter-chip"
          aria-label={words.removeFilter(describe(name))}
          title={words.removeFilter(describe(name))}
          onClick={() => remove(name)}
          onKeyDown={(event) => removeByKey(event, name)}
        >
          <span dir="auto">{describe(name)}</span>
          <CloseIcon />
        </button>
      ))}
      {names.length > 1 && (
        <button
          type="button"
          className="text-button"
          onClick={() => {
            onChange(NO_FILTERS);
            document.getElementById("search")?.focus();
          }}
        >
          {words.clearFilters}
        </button>
      )}
    </div>
  );
}

function buildChipId(name: FilterName): string {
  return `filter-chip-${name}`;
}

function useFilterDescriptions(filters: SearchFilters): (name: FilterName) => string {
  const projects = useProjects();
  const people = useSearchPeople(filters.person !== "");
  const roles: Record<string, string> = { user: words.filterRoleUser, assistant: words.filterRoleAgent, tool: words.filterRoleTool };
  const find = (items: readonly { id: string; name: string }[], text: string) =>
    items.find(({ id, name }) => id === text || name === text)?.name ?? words.filterUnknown;
  const describe: Record<FilterName, () => string> = {
    platform: () => `${words.filterPlatform}: ${getPlatformName(filters.platform)}`,
    role: () => `${words.filterRole}: ${roles[filters.role] ?? filters.role}`,
    person: () => `${words.filterPerson}: ${find(people, filters.person)}`,
    project: () => `${words.filterProject}: ${find(projects, filters.project)}`,
    from: () => `${words.filterFrom} ${formatDay(filters.from)}`,
    to: () => `${words.filterTo} ${formatDay(filters.to)}`,
    archived: () => (filters.archived === "only" ? words.filterArchivedOnly : words.filterArchivedWithout),
  };
  return (name) => describe[name]();
}

function formatDay(day: string): string {
  return formatDate(`${day}T12:00:00`);
}
