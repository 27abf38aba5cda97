/** Going anywhere and doing anything from the keyboard. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useId, useMemo, useState, type KeyboardEvent } from "react";
import * as calls from "../api/calls";
import type { Me, Session } from "../api/types";
import { archive, attempt, change, compress, fork, redo, retry, undo } from "../conversation/actions";
import { NEW, offerText } from "../conversation/composing";
import { go, sessionAt, useHere } from "../lib/router";
import { ago } from "../lib/time";
import { useCenter, useMe, useSessions } from "../live/context";
import type { Center } from "../live/center";
import { panelsFor } from "../routes";
import { focusComposer, focusSearch, openShortcuts, startNew } from "../shell/Shortcuts";
import { giveWay } from "../shell/layout";
import { toggleTheme } from "../shell/theme";
import { newestFirst } from "../sidebar/arrange";
import { nameOf } from "../sidebar/naming";
import { Dialog } from "../ui/Dialog";
import { words } from "../words";
import { byGroup, fitting, type Choice } from "./choices";
import { closePalette } from "./open";

const MOST = 8; // conversations shown at once

export default function Palette() {
  const id = useId();
  const [typed, setTyped] = useState("");
  const [place, setPlace] = useState(0);
  const shown = useDeferredValue(typed);
  const offer = useOffer(shown.trim());
  const found = useMemo(() => offer(shown), [offer, shown]);
  const chosen = found[Math.max(0, Math.min(place, found.length - 1))];

  const take = (choice: Choice | undefined) => {
    if (choice === undefined) return;
    closePalette();
    setTimeout(choice.act, 0); // after the dialogue has given the focus back
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const keys: Record<string, () => void> = {
      ArrowDown: () => setPlace(Math.max(0, Math.min(place + 1, found.length - 1))),
      ArrowUp: () => setPlace(Math.max(place - 1, 0)),
      Enter: () => take(shown === typed ? chosen : offer(typed)[0]), // who types fast means what they typed
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
        aria-activedescendant={chosen && `${id}-${chosen.id}`}
        onChange={(event) => {
          setTyped(event.target.value);
          setPlace(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div className="choices" role="listbox" id={id} aria-label={words.palette}>
        {byGroup(found).map(([group, choices]) => (
          <div key={group} role="group" aria-label={group}>
            <h3 aria-hidden="true">{group}</h3>
            {choices.map((choice) => (
              <div
                key={choice.id}
                id={`${id}-${choice.id}`}
                role="option"
                aria-selected={choice === chosen}
                className="choice"
                ref={(element) => {
                  if (choice !== chosen) return;
                  element?.scrollIntoView({ block: "nearest" });
                  choice.point?.();
                }}
                onPointerEnter={choice.point}
                onClick={() => take(choice)}
              >
                <span dir="auto">{choice.label}</span>
                <small dir="auto">{choice.detail}</small>
              </div>
            ))}
          </div>
        ))}
        {found.length === 0 && <p className="nothing">{words.nothingFound}</p>}
      </div>
      <p className="palette-hint">{words.paletteHint}</p>
    </Dialog>
  );
}

/** What there is to choose for a text; `wanted` is looked for on the server too. */
function useOffer(wanted: string): (typed: string) => Choice[] {
  const center = useCenter();
  const me = useMe();
  const sessions = useSessions();
  const open = sessionAt(useHere())?.id ?? null;
  const commands = useQuery({ queryKey: ["commands"], queryFn: calls.commands, staleTime: Infinity }).data?.commands;
  const elsewhere = useQuery({
    queryKey: ["titles", wanted, center.everybodys.value],
    queryFn: () => calls.listSessions({ shelf: "current", text: wanted, all: center.everybodys.value }, null, MOST),
    enabled: wanted.length > 1,
    placeholderData: keepPreviousData,
  }).data?.sessions;

  return useMemo(() => {
    const known = new Map([...sessions.values(), ...(elsewhere ?? [])].map((session) => [session.id, session]));
    const newest = [...known.values()].filter((session) => session.active_at !== null).sort(newestFirst);
    const giving = (commands ?? []).map((command): Choice => ({
      id: command.name,
      group: words.commands,
      label: `${command.name} ${command.usage}`.trim(),
      detail: command.summary,
      act: () => {
        offerText(open ?? NEW, `${command.name} `);
        requestAnimationFrame(focusComposer);
      },
    }));
    const doing = actionsFor(center, me, open);
    return (typed: string) => {
      const isCommand = typed.startsWith("/");
      const going = isCommand ? [] : fitting(newest, typed, (session) => [nameOf(session), ""]).slice(0, MOST);
      const done = isCommand ? [] : fitting(doing, typed, wordsOf);
      const given = isCommand || typed.trim() !== "" ? fitting(giving, typed, wordsOf) : [];
      return [...going.map(wayTo), ...done, ...given];
    };
  }, [center, me, sessions, elsewhere, commands, open]);
}

function wordsOf({ label, detail }: Choice): readonly [string, string] {
  return [label, detail];
}

function wayTo(session: Session): Choice {
  return {
    id: session.id,
    group: words.conversations,
    label: nameOf(session),
    detail: ago(session.active_at ?? session.created_at),
    act: () => {
      go(session.id);
      giveWay();
    },
  };
}

function actionsFor(center: Center, me: Me, open: string | null): Choice[] {
  const action = (id: string, label: string, act: () => void): Choice => ({
    id: `do-${id}`,
    group: words.actions,
    label,
    detail: "",
    act,
  });
  const session = open === null ? undefined : center.state.value.sessions.get(open);
  const here =
    session === undefined
      ? []
      : [
          action("write", words.focusComposer, focusComposer),
          ...(session.running ? [action("stop", words.stop, () => void attempt(() => calls.stop(session.id)))] : []),
          action("undo", words.undo, () => void undo(session.id)),
          action("redo", words.redoLast, () => void redo(session.id)),
          action("retry", words.retry, () => void retry(session.id)),
          action("pin", session.pinned ? words.unpin : words.pin, () =>
            void change(center, [session.id], { pinned: !session.pinned }),
          ),
          action("archive", session.archived ? words.unarchive : words.doArchive, () =>
            void archive(center, [session.id], !session.archived),
          ),
          action("fork", words.forkHere, () => void fork(center, session.id, null)),
          action("compress", words.compress, () => void compress(session.id)),
        ];
  return [
    action("new", words.newConversation, startNew),
    ...here,
    action("search", words.search, focusSearch),
    ...panelsFor(me).map(({ step, label, page }) => ({ ...action(step, label(), () => go(step)), point: page.fetch })),
    action("theme", words.toggleTheme, toggleTheme),
    action("keys", words.showShortcuts, openShortcuts),
  ];
}
