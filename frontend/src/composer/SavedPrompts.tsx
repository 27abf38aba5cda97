/** The saved prompts of a composer: the menu that lists them, and the dialog for their placeholders. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import * as calls from "../api/calls";
import type { SavedPrompt } from "../api/types";
import { navigate } from "../lib/router";
import { BookmarkIcon } from "../ui/icons";
import { Menu, MenuItem, MenuNote, MenuSeparator } from "../ui/Menu";
import { words } from "../words";
import { listPlaceholders } from "./placeholders";

const PromptDialog = lazy(() => import("./PromptDialog"));
const NO_PROMPTS: readonly SavedPrompt[] = [];

export function useSavedPrompts(isEnabled: boolean): readonly SavedPrompt[] {
  return useQuery({ queryKey: ["prompts"], queryFn: calls.listPrompts, enabled: isEnabled, staleTime: 30_000 }).data?.prompts ?? NO_PROMPTS;
}

/** A function that puts a prompt into the composer, after asking for its placeholders, and the dialog that asks. */
export function usePromptInsertion(insert: (text: string) => void) {
  const [asked, setAsked] = useState<SavedPrompt | null>(null);
  const choose = (prompt: SavedPrompt) => (listPlaceholders(prompt.text).length === 0 ? insert(prompt.text) : setAsked(prompt));
  const dialog = asked !== null && (
    <Suspense>
      <PromptDialog
        prompt={asked}
        onClose={() => setAsked(null)}
        onDone={(text) => {
          setAsked(null);
          insert(text);
        }}
      />
    </Suspense>
  );
  return { choose, dialog };
}

export function PromptMenu({ onChoose }: { onChoose: (prompt: SavedPrompt) => void }) {
  return (
    <Menu
      side="top"
      align="start"
      button={
        <button type="button" className="icon-button" title={words.promptsButton} aria-label={words.promptsButton}>
          <BookmarkIcon />
        </button>
      }
    >
      <PromptItems onChoose={onChoose} />
    </Menu>
  );
}

function PromptItems({ onChoose }: { onChoose: (prompt: SavedPrompt) => void }) {
  const prompts = useSavedPrompts(true);
  return (
    <>
      {prompts.length === 0 && <MenuNote isMuted>{words.promptsEmpty}</MenuNote>}
      {prompts.map((prompt) => (
        <MenuItem key={prompt.id} onSelect={() => onChoose(prompt)}>
          <span dir="auto">{prompt.name}</span>
        </MenuItem>
      ))}
      <MenuSeparator />
      <MenuItem onSelect={() => navigate("prompts")}>{words.managePrompts}</MenuItem>
    </>
  );
}
