/**
 * The pages of this page. A panel adds one line: where it is, what it is called, and how it is loaded.
 *
 * Conversations are no panels: their address is their id.
 */
import type { ReactNode } from "react";
import type { Me } from "./api/types";
import { lazily, type Lazily } from "./lib/lazily";
import { ChartIcon, MemoryIcon, PeopleIcon, PlatformsIcon, SettingsIcon } from "./ui/icons";
import { words } from "./words";

export interface Panel {
  step: string; // its address, below the place the page is served from
  label: () => string;
  icon: ReactNode;
  page: Lazily<object>; // fetched when somebody points at the way to it
  forOwner?: boolean; // nobody else may open it
}

const panels: readonly Panel[] = [
  { step: "memory", label: () => words.memory, icon: <MemoryIcon />, page: lazily(() => import("./panels/memory/MemoryPanel")) },
  { step: "usage", label: () => words.usage, icon: <ChartIcon />, page: lazily(() => import("./panels/usage/UsagePanel")) },
  {
    step: "people",
    label: () => words.people,
    icon: <PeopleIcon />,
    page: lazily(() => import("./panels/people/PeoplePanel")),
    forOwner: true,
  },
  {
    step: "platforms",
    label: () => words.platformsPanel,
    icon: <PlatformsIcon />,
    page: lazily(() => import("./panels/platforms/PlatformsPanel")),
  },
  {
    step: "settings",
    label: () => words.settings,
    icon: <SettingsIcon />,
    page: lazily(() => import("./panels/settings/SettingsPanel")),
  },
];

/** The panels that somebody may open. */
export function panelsFor(me: Me): readonly Panel[] {
  return panels.filter((panel) => !panel.forOwner || me.person.role === "owner");
}
