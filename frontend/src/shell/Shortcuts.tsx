/** Keys for the whole page, and the list of them. */
import { useEffect } from "react";
import * as calls from "../api/calls";
import { attempt } from "../conversation/actions";
import { keep, recall } from "../lib/keep";
import { go, sessionAt, whereWeAre } from "../lib/router";
import { Store, useStore } from "../lib/store";
import { useCenter } from "../live/context";
import { isAnswering } from "../live/state";
import { openPalette } from "../palette/open";
import { Dialog } from "../ui/Dialog";
import { words } from "../words";
import { giveWay, isNarrow, showSidebar, sidebarShown, toggleSidebar } from "./layout";

/** Whether single keys do something: whoever dictates, or strikes keys by chance, would rather not. */
export const singleKeys = new Store(recall("keys") !== "off");

export function allowSingleKeys(areAllowed: boolean): void {
  keep("keys", areAllowed ? null : "off");
  singleKeys.update(() => areAllowed);
}

const isOpen = new Store(false);
const itself = (value: boolean) => value;

export function openShortcuts(): void {
  isOpen.update(() => true);
}

const isMac = /\bMac OS X\b/.test(navigator.userAgent);
const MOD = isMac ? "⌘" : "Ctrl";

/** Listens for the keys; `order` are the conversations as the list shows them. */
export function useShortcuts(order: () => readonly string[]): void {
  const center = useCenter();
  useEffect(() => {
    const step = (by: number) => {
      const ids = order();
      const place = ids.indexOf(whereWeAre().step);
      const next = ids[place < 0 ? 0 : place + by];
      if (next !== undefined) go(next);
    };
    const stop = () => {
      const at = sessionAt(whereWeAre());
      if (at !== null && isAnswering(center.state.value, at.id)) void attempt(() => calls.stop(at.id));
    };
    const onKeyDown = (event: KeyboardEvent) => {
      const withMod = isMac ? event.metaKey : event.ctrlKey;
      const isWriting = event.target instanceof HTMLElement && event.target.matches("input, textarea, [contenteditable]");
      const act = (() => {
        if (document.querySelector("dialog[open], .menu") !== null) return null;
        if (withMod && event.key.toLowerCase() === "k" && !event.shiftKey) return openPalette;
        if (withMod && event.shiftKey && event.key.toLowerCase() === "o") return startNew;
        if (withMod && event.shiftKey && event.key.toLowerCase() === "f") return focusSearch;
        if (event.altKey && event.key === "ArrowDown") return () => step(1);
        if (event.altKey && event.key === "ArrowUp") return () => step(-1);
        if (event.key === "Escape" && event.shiftKey) return stop;
        if (isWriting || withMod || event.altKey) return null;
        if (event.key === "Escape") return isNarrow.value && sidebarShown.value ? toggleSidebar : null;
        if (!singleKeys.value) return null;
        if (event.key === "/") return focusSearch;
        if (event.key === "c") return focusComposer;
        return event.key === "?" ? openShortcuts : null;
      })();
      if (act === null) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [center, order]);
}

export function startNew(): void {
  go("");
  giveWay();
  requestAnimationFrame(focusComposer);
}

export function focusComposer(): void {
  document.getElementById("composer")?.focus();
}

export function focusSearch(): void {
  showSidebar(true);
  requestAnimationFrame(() => document.getElementById("search")?.focus());
}

export function ShortcutList() {
  const shown = useStore(isOpen, itself);
  const areSingle = useStore(singleKeys, itself);
  if (!shown) return null;
  const single: [string, string][] = [
    ["/", words.shortcutSearch],
    ["c", words.shortcutCompose],
    ["?", words.shortcutHelp],
  ];
  const keys: [string, string][] = [
    [`${MOD} K`, words.shortcutPalette],
    [`${MOD} ⇧ O`, words.shortcutNew],
    [`${MOD} ⇧ F`, words.shortcutSearch],
    ["Alt ↓", words.shortcutNext],
    ["Alt ↑", words.shortcutPrevious],
    ["⇧ Esc", words.shortcutStop],
    ...(areSingle ? single : []),
  ];
  return (
    <Dialog label={words.shortcuts} onClose={() => isOpen.update(() => false)}>
      <h2>{words.shortcuts}</h2>
      <dl className="keys">
        {keys.map(([key, does]) => (
          <div key={key}>
            <dt>{does}</dt>
            <dd>
              <kbd>{key}</kbd>
            </dd>
          </div>
        ))}
      </dl>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={() => isOpen.update(() => false)}>
          {words.close}
        </button>
      </div>
    </Dialog>
  );
}
