/**
 * The pages of this page. A panel adds one line: where it is, what it is called, and how it is loaded.
 *
 * Conversations are no panels: their address is their id.
 */
import type { ComponentType, LazyExoticComponent, ReactNode } from "react";

export interface Panel {
  step: string; // its address, below the place the page is served from
  label: () => string;
  icon: ReactNode;
  page: LazyExoticComponent<ComponentType>;
}

export const panels: readonly Panel[] = [];
