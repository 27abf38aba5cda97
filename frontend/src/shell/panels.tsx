/** The panels of the page. A new panel is one entry here. Conversations are not panels: their address is their id. */
import type { ReactNode } from "react";
import type { Me } from "../api/types";
import { lazyWithPreload, type PreloadableComponent } from "../lib/lazyWithPreload";
import { BookmarkIcon, ChartIcon, ClockIcon, HealthIcon, LogIcon, MemoryIcon, PeopleIcon, PlatformsIcon, SettingsIcon, SlidersIcon, WalletIcon } from "../ui/icons";
import { words } from "../words";

export interface Panel {
  path: string; // below the base URL
  label: () => string;
  icon: ReactNode;
  page: PreloadableComponent<object>; // loaded when its menu item is highlighted
  isForOwner?: boolean; // only for owners
}

const panels: readonly Panel[] = [
  {
    path: "jobs",
    label: () => words.jobs,
    icon: <ClockIcon />,
    page: lazyWithPreload(() => import("../panels/jobs/JobsPanel")),
  },
  {
    path: "memory",
    label: () => words.memory,
    icon: <MemoryIcon />,
    page: lazyWithPreload(() => import("../panels/memory/MemoryPanel")),
  },
  {
    path: "usage",
    label: () => words.usage,
    icon: <ChartIcon />,
    page: lazyWithPreload(() => import("../panels/usage/UsagePanel")),
  },
  {
    path: "budget",
    label: () => words.budget,
    icon: <WalletIcon />,
    page: lazyWithPreload(() => import("../panels/budget/BudgetPanel")),
  },
  {
    path: "prompts",
    label: () => words.savedPrompts,
    icon: <BookmarkIcon />,
    page: lazyWithPreload(() => import("../panels/prompts/PromptsPanel")),
  },
  {
    path: "people",
    label: () => words.people,
    icon: <PeopleIcon />,
    page: lazyWithPreload(() => import("../panels/people/PeoplePanel")),
    isForOwner: true,
  },
  {
    path: "platforms",
    label: () => words.platformsPanel,
    icon: <PlatformsIcon />,
    page: lazyWithPreload(() => import("../panels/platforms/PlatformsPanel")),
  },
  {
    path: "health",
    label: () => words.health,
    icon: <HealthIcon />,
    page: lazyWithPreload(() => import("../panels/operation/HealthPanel")),
    isForOwner: true,
  },
  {
    path: "logs",
    label: () => words.logs,
    icon: <LogIcon />,
    page: lazyWithPreload(() => import("../panels/operation/LogsPanel")),
    isForOwner: true,
  },
  {
    path: "server",
    label: () => words.serverSettings,
    icon: <SlidersIcon />,
    page: lazyWithPreload(() => import("../panels/server/ServerPanel")),
    isForOwner: true,
  },
  {
    path: "settings",
    label: () => words.settings,
    icon: <SettingsIcon />,
    page: lazyWithPreload(() => import("../panels/settings/SettingsPanel")),
  },
];

export function getPanelsFor(me: Me): readonly Panel[] {
  return panels.filter((panel) => !panel.isForOwner || me.person.role === "owner");
}
