/** The requests of the panel of saved prompts. */
import { request } from "../../api/http";
import type { Schemas } from "../../api/types";

export const createPrompt = (fields: Schemas["NewSavedPromptIn"]) => request("POST", "/api/prompts", { body: fields });
export const updatePrompt = (id: string, changes: Schemas["SavedPromptChangesIn"]) =>
  request("PATCH", "/api/prompts/{prompt_id}", { path: { prompt_id: id }, body: changes });
export const deletePrompt = (id: string) => request("DELETE", "/api/prompts/{prompt_id}", { path: { prompt_id: id } });
