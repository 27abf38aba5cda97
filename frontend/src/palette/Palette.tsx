/** The command palette: opens conversations and pages and runs actions from the keyboard. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useId, useMemo, useState, type KeyboardEvent } from "react";
import { attempt } from "../api/attempt";
import * as calls from "../api/calls";
import type { Session } from "../api/types";
import { formatRecent } from "../format/time";
import { closePalette, openShortcutsDialog } from "../layout/dialogs";
import { focusComposer, focusSearch, openTemporaryConversation, startConversation } from "../layout/focus";
import { hideSidebarIfNarrow } from "../layout/sidebarVisibility";
import { toggleTheme } from "../layout/theme";
import { navigate, parseSessionLocation, useLocation } from "../lib/router";
import { useLiveClient, useSessions } from "../live/context";
import type { LiveClient } from "../live/liveClient";
import { NEW_DRAFT } from "../outbox/composerDrafts";
import { suggestText } from "../outbox/textSuggestions";
import { archiveSessions, compactSession, forkSession, redoTurn, retryTurn, undoTurn, updateSessions } from "../sessions/actions";
import { getSessionName } from "../sessions/names";
import { compareByActivity } from "../sessions/order";
import { Dialog } from "../ui/Dialog";
import { words } from "../words";
import { findMatches, groupChoices, type Choice } from "./choices";
import "./Palette.css";

const MAX_CONVERSATIONS = 8;

/** A page that the palette can open. */
interface PanelLink {
  path: string;
  label: () => string;
  page: { preload: () => void };
}

export default function Palette({ panels }: { panels: readonly PanelLink[] }) {
  const id = useId();
  const [typed, setTyped] = useState("");
  const [index, setIndex] = useState(0);
  const deferred = useDeferredValue(typed);
  const findChoices = useChoices(panels, deferred.trim());
  const found = useMemo(() => findChoices(deferred), [findChoices, deferred]);
  const highlighted = found[Math.max(0, Math.min(index, found.length - 1))];

  const run = (choice: Choice | undefined) => {
    if (choice === undefined) return;
    closePalette();
    setTimeout(choice.act, 0); // after the dialog has returned the focus
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const keys: Record<string, () => void> = {
      ArrowDown: () => setIndex(Math.max(0, Math.min(index + 1, found.length - 1))),
      ArrowUp: () => setIndex(Math.max(index - 1, 0)),
      Enter: () => run(deferred === typed ? highlighted : findChoices(typed)[0]), // the list may lag behind fast typing
    };
    const act = keys[event.key];
    if (act === undefined || event.nativeEvent.isComposing) return;
    event.preventDefault();
    act();
  };

  return (
    <Dialog label={words.palette} className="palette" onClose={closePalette}>
      <input
        autoFocus
        dir="auto"
        value={typed}
        placeholder={words.palettePlaceholder}
        aria-label={words.palettePlaceholder}
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={highlighted && `${id}-${highlighted.id}`}
        onChange={(event) => {
          setTyped(event.target.value);
          setIndex(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div className="choices" role="listbox" id={id} aria-label={words.palette}>
        {groupChoices(found).map(([group, choices]) => (
          <div key={group} role="group" aria-label={group}>
            <h3 aria-hidden="true">{group}</h3>
            {choices.map((choice) => (
              <div
                key={choice.id}
                id={`${id}-${choice.id}`}
                role="option"
                aria-selected={choice === highlighted}
                className="choice"
                ref={(element) => {
                  if (choice !== highlighted) return;
                  element?.scrollIntoView({ block: "nearest" });
                  choice.preload?.();
                }}
                onPointerEnter={choice.preload}
                onClick={() => run(choice)}
              >
                <span dir="auto">{choice.label}</span>
                <small dir="auto">{choice.detail}</small>
              </div>
            ))}
          </div>
        ))}
        {found.length === 0 && <p className="empty-note">{words.noResults}</p>}
      </div>
      <p className="palette-hint">{words.paletteHint}</p>
    </Dialog>
  );
}

/** Returns a function that finds the choices for a text. The server searches for conversations with `query` in the title. */
function useChoices(panels: readonly PanelLink[], query: string): (typed: string) => Choice[] {
  const client = useLiveClient();
  const sessions = useSessions();
  const openId = parseSessionLocation(useLocation())?.id ?? null;
  const commands = useQuery({ queryKey: ["commands"], queryFn: calls.listCommands, staleTime: Infinity }).data?.commands;
  const serverMatches = useQuery({
    queryKey: ["titles", query, client.showsAll.value],
    queryFn: () => calls.listSessions({ state: "active", query: query, all: client.showsAll.value }, null, MAX_CONVERSATIONS),
    enabled: query.length > 1,
    placeholderData: keepPreviousData,
  }).data?.sessions;

  return useMemo(() => {
    const byId = new Map([...sessions.values(), ...(serverMatches ?? [])].map((session) => [session.id, session]));
    const newest = [...byId.values()].filter((session) => session.active_at !== null).sort(compareByActivity);
    const commandChoices = (commands ?? []).map((command): Choice => ({
      id: command.name,
      group: words.commands,
      label: `${command.name} ${command.usage}`.trim(),
      detail: command.summary,
      act: () => {
        suggestText(openId ?? NEW_DRAFT, `${command.name} `);
        requestAnimationFrame(focusComposer);
      },
    }));
    const actions = buildActions(client, panels, openId);
    return (typed: string) => {
      const isCommand = typed.startsWith("/");
      const matchingSessions = isCommand
        ? []
        : findMatches(newest, typed, (session) => [getSessionName(session), ""]).slice(0, MAX_CONVERSATIONS);
      const matchingActions = isCommand ? [] : findMatches(actions, typed, getSearchTexts);
      const matchingCommands = isCommand || typed.trim() !== "" ? findMatches(commandChoices, typed, getSearchTexts) : [];
      return [...matchingSessions.map(buildSessionChoice), ...matchingActions, ...matchingCommands];
    };
  }, [client, panels, sessions, serverMatches, commands, openId]);
}

function getSearchTexts({ label, detail }: Choice): readonly [string, string] {
  return [label, detail];
}

function buildSessionChoice(session: Session): Choice {
  return {
    id: session.id,
    group: words.conversations,
    label: getSessionName(session),
    detail: formatRecent(session.active_at ?? session.created_at),
    act: () => {
      navigate(session.id);
      hideSidebarIfNarrow();
    },
  };
}

function buildActions(client: LiveClient, panels: readonly PanelLink[], openId: string | null): Choice[] {
  const action = (id: string, label: string, act: () => void): Choice => ({
    id: `do-${id}`,
    group: words.actions,
    label,
    detail: "",
    act,
  });
  const session = openId === null ? undefined : client.state.value.sessions.get(openId);
  const sessionActions =
    session === undefined
      ? []
      : [
          action("write", words.writeMessage, focusComposer),
          ...(session.running ? [action("stop", words.stopAnswer, () => void attempt(() => calls.stopTurn(session.id)))] : []),
          action("undo", words.undoTurn, () => void undoTurn(session.id)),
          action("redo", words.redoTurn, () => void redoTurn(session.id)),
          action("retry", words.regenerate, () => void retryTurn(session.id)),
          action(
            "pin",
            session.pinned ? words.unpin : words.pin,
            () => void updateSessions(client, [session.id], { pinned: !session.pinned }),
          ),
          action(
            "archive",
            session.archived ? words.unarchive : words.archiveAction,
            () => void archiveSessions(client, [session.id], !session.archived),
          ),
          action("fork", words.branchFromHere, () => void forkSession(client, session.id, null)),
          action("compact", words.compactContext, () => void compactSession(session.id)),
        ];
  return [
    action("new", words.newConversation, startConversation),
    action("temporary", words.temporaryConversation, openTemporaryConversation),
    ...sessionActions,
    action("search", words.search, focusSearch),
    ...panels.map(({ path, label, page }) => ({ ...action(path, label(), () => navigate(path)), preload: page.preload })),
    action("theme", words.toggleTheme, toggleTheme),
    action("keys", words.showShortcuts, openShortcutsDialog),
  ];
}
