/** The fields that narrow a search down: who wrote it, platform, project, archive, and days. */
import { useState, type ReactNode } from "react";
import { getPlatformName } from "../format/platforms";
import { useProjects } from "../sessions/useProjects";
import { ChevronDownIcon } from "../ui/icons";
import { words } from "../words";
import type { SearchFilters } from "./searchFilters";
import { useSearchPeople } from "./useSearchPeople";
import "./filters.css";

const PLATFORMS = ["web", "local", "api", "telegram", "discord", "slack", "whatsapp", "signal", "matrix", "email", "webhook"];

interface Props {
  filters: SearchFilters;
  onChange: (filters: SearchFilters) => void;
}

export function SearchFilterFields({ filters, onChange }: Props) {
  const projects = useProjects();
  const [isOpen, setOpen] = useState(false);
  const people = useSearchPeople(isOpen);
  const set = (change: Partial<SearchFilters>) => onChange({ ...filters, ...change });
  return (
    <details className="search-filters" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {words.addFilter}
        <ChevronDownIcon />
      </summary>
      <div className="search-filter-fields">
        <SelectField label={words.filterRole} value={filters.role} onChange={(role) => set({ role })}>
          <option value="user">{words.filterRoleUser}</option>
          <option value="assistant">{words.filterRoleAgent}</option>
          <option value="tool">{words.filterRoleTool}</option>
        </SelectField>
        <SelectField label={words.filterPlatform} value={filters.platform} onChange={(platform) => set({ platform })}>
          {PLATFORMS.map((platform) => (
            <option key={platform} value={platform}>
              {getPlatformName(platform)}
            </option>
          ))}
        </SelectField>
        {people.length > 1 && (
          <SelectField label={words.filterPerson} value={filters.person} onChange={(person) => set({ person })}>
            {people.map((person) => (
              <option key={person.id} value={person.id}>
                {person.name}
              </option>
            ))}
          </SelectField>
        )}
        <SelectField label={words.archived} value={filters.archived} onChange={(archived) => set({ archived })}>
          <option value="only">{words.filterArchivedOnly}</option>
          <option value="without">{words.filterArchivedWithout}</option>
        </SelectField>
        {projects.length > 0 && (
          <SelectField label={words.filterProject} value={filters.project} onChange={(project) => set({ project })}>
            {projects.map((project) => (
              <option key={project.id} value={project.id}>
                {project.name}
              </option>
            ))}
          </SelectField>
        )}
        <DayField label={words.filterFrom} value={filters.from} onChange={(from) => set({ from })} />
        <DayField label={words.filterTo} value={filters.to} onChange={(to) => set({ to })} />
      </div>
    </details>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

function SelectField({ label, value, onChange, children }: FieldProps & { children: ReactNode }) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{words.filterAny}</option>
        {children}
      </select>
    </label>
  );
}

function DayField({ label, value, onChange }: FieldProps) {
  return (
    <label>
      {label}
      <input type="date" value={value} onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}
