/** The keyboard shortcuts of the page, and the dialog that lists them. */
import { useEffect } from "react";
import { attempt } from "../api/attempt";
import * as calls from "../api/calls";
import { closeShortcutsDialog, isShortcutsDialogOpen, openPalette, openShortcutsDialog } from "../layout/dialogs";
import { focusComposer, focusSearch, openTemporaryConversation, startConversation, TEMPORARY_PATH } from "../layout/focus";
import { isNarrow, isSidebarShown, toggleSidebar } from "../layout/sidebarVisibility";
import { areSingleKeysOn } from "../layout/singleKeyShortcuts";
import { getLocation, navigate, parseSessionLocation } from "../lib/router";
import { useStore } from "../lib/store";
import { useLiveClient } from "../live/context";
import { isAnswering } from "../live/state";
import { temporaryChat } from "../temporary/temporaryChat";
import { Dialog } from "../ui/Dialog";
import { words } from "../words";
import "./Shortcuts.css";

const isMac = /\bMac OS X\b/.test(navigator.userAgent);
const MODIFIER = isMac ? "⌘" : "Ctrl";

/** Listens for shortcuts. `getListedIds` returns the conversations in the order of the list. */
export function useShortcuts(getListedIds: () => readonly string[]): void {
  const client = useLiveClient();
  useEffect(() => {
    const openAdjacent = (offset: number) => {
      const ids = getListedIds();
      const index = ids.indexOf(getLocation().path);
      const next = ids[index < 0 ? 0 : index + offset];
      if (next !== undefined) navigate(next);
    };
    const stopAnswer = () => {
      if (getLocation().path === TEMPORARY_PATH) temporaryChat.stop();
      const session = parseSessionLocation(getLocation());
      if (session !== null && isAnswering(client.state.value, session.id)) void attempt(() => calls.stopTurn(session.id));
    };
    const onKeyDown = (event: KeyboardEvent) => {
      const hasModifier = isMac ? event.metaKey : event.ctrlKey;
      const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea, [contenteditable]");
      const act = (() => {
        if (document.querySelector("dialog[open], .menu") !== null) return null;
        if (hasModifier && event.key.toLowerCase() === "k" && !event.shiftKey) return openPalette;
        if (hasModifier && event.shiftKey && event.key.toLowerCase() === "o") return startConversation;
        if (hasModifier && event.shiftKey && event.key.toLowerCase() === "l") return openTemporaryConversation;
        if (hasModifier && event.shiftKey && event.key.toLowerCase() === "f") return focusSearch;
        if (event.altKey && event.key === "ArrowDown") return () => openAdjacent(1);
        if (event.altKey && event.key === "ArrowUp") return () => openAdjacent(-1);
        if (event.key === "Escape" && event.shiftKey) return stopAnswer;
        if (isTyping || hasModifier || event.altKey) return null;
        if (event.key === "Escape") return isNarrow.value && isSidebarShown.value ? toggleSidebar : null;
        if (!areSingleKeysOn.value) return null;
        if (event.key === "/") return focusSearch;
        if (event.key === "c") return focusComposer;
        return event.key === "?" ? openShortcutsDialog : null;
      })();
      if (act === null) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [client, getListedIds]);
}

export function ShortcutsDialog() {
  const isOpen = useStore(isShortcutsDialogOpen);
  const hasSingleKeys = useStore(areSingleKeysOn);
  if (!isOpen) return null;
  const singleKeys: [string, string][] = [
    ["/", words.shortcutSearch],
    ["c", words.shortcutCompose],
    ["?", words.shortcutHelp],
  ];
  const keys: [string, string][] = [
    [`${MODIFIER} K`, words.shortcutPalette],
    [`${MODIFIER} ⇧ O`, words.shortcutNew],
    [`${MODIFIER} ⇧ L`, words.shortcutTemporary],
    [`${MODIFIER} ⇧ F`, words.shortcutSearch],
    ["Alt ↓", words.shortcutNext],
    ["Alt ↑", words.shortcutPrevious],
    ["⇧ Esc", words.shortcutStop],
    ...(hasSingleKeys ? singleKeys : []),
  ];
  return (
    <Dialog label={words.shortcuts} onClose={closeShortcutsDialog}>
      <h2>{words.shortcuts}</h2>
      <dl className="shortcut-list">
        {keys.map(([key, action]) => (
          <div key={key}>
            <dt>{action}</dt>
            <dd>
              <kbd>{key}</kbd>
            </dd>
          </div>
        ))}
      </dl>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={closeShortcutsDialog}>
          {words.close}
        </button>
      </div>
    </Dialog>
  );
}
