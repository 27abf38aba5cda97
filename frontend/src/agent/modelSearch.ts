/** Finds models by parts of their names. Pure. */
import type { OfferedModels } from "../api/types";

/** The models whose names contain every word, by provider; providers without one are left out. */
export function findModels(providers: readonly OfferedModels[], text: string): OfferedModels[] {
  const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
  return providers
    .map((each) => ({ ...each, models: each.models.filter((model) => parts.every((part) => model.toLowerCase().includes(part))) }))
    .filter(({ models }) => models.length > 0);
}
