/** Where people write: text, files, commands; and what becomes of it while an answer is being given. */
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useId, useRef, useState, type ClipboardEvent, type KeyboardEvent } from "react";
import * as calls from "../api/calls";
import type { BusyPolicy, Command } from "../api/types";
import { useStore } from "../lib/store";
import { useCenter } from "../live/context";
import type { Entry } from "../outbox/entries";
import { ArrowUpIcon, ChevronDownIcon, PaperclipIcon, StopIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices } from "../ui/Menu";
import { words } from "../words";
import { AddedFiles } from "./Attachments";
import { completed, completions } from "./completion";
import { offered } from "./composing";
import { filesIn } from "./pasted";
import type { Unfinished } from "./unfinished";

interface Props {
  place: string; // under which what is unfinished is kept
  placeholder: string;
  running: boolean;
  policy: BusyPolicy | null; // what the conversation does with messages in between
  onSend: (said: Pick<Entry, "text" | "attachments" | "busy">) => void;
  onStop?: () => void;
}

const NO_COMMANDS: readonly Command[] = [];
const newest = <T,>(value: T) => value;

export function Composer({ place, placeholder, running, policy, onSend, onStop }: Props) {
  const { unfinished } = useCenter();
  const [text, setText] = useText(unfinished, place);
  const adding = useStore(
    unfinished.files,
    useCallback(() => unfinished.added(place), [unfinished, place]),
  );
  const [busy, setBusy] = useBusy(policy, running);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isUploading = adding.some((each) => each.uploaded === null);
  const isEmpty = text.trim() === "" && adding.length === 0;
  const completion = useCompletion(text, setText);

  const send = () => {
    const added = unfinished.added(place); // as they are now; what is shown follows a moment later
    if ((text.trim() === "" && added.length === 0) || added.some((each) => each.uploaded === null)) return;
    const attachments = added.flatMap((each) => each.uploaded ?? []);
    onSend({ text: text.trim(), attachments, ...(running && { busy }) });
    setText("");
    unfinished.clear(place);
    field.current?.focus();
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing || completion.onKeyDown(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !isTouch()) {
      event.preventDefault();
      send();
    }
  };

  const onPaste = (event: ClipboardEvent) => {
    const files = filesIn(event.clipboardData);
    if (files.length === 0) return;
    event.preventDefault();
    unfinished.add(place, files);
  };

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {completion.list}
      <AddedFiles adding={adding} onRemove={(id) => unfinished.remove(place, id)} />
      <textarea
        ref={field}
        id="composer"
        rows={1}
        dir="auto"
        value={text}
        placeholder={placeholder}
        aria-label={placeholder}
        enterKeyHint={isTouch() ? "enter" : "send"}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
        {...completion.field}
      />
      <div className="composer-bar">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            unfinished.add(place, event.target.files ?? []);
            event.target.value = "";
          }}
        />
        <button
          type="button"
          className="icon-button"
          title={words.attach}
          aria-label={words.attach}
          onClick={() => picker.current?.click()}
        >
          <PaperclipIcon />
        </button>
        <span className="grow" />
        {running && <BusyMenu busy={busy} onChange={setBusy} />}
        {running && onStop !== undefined && (
          <button type="button" className="round-button stop" title={words.stop} aria-label={words.stop} onClick={onStop}>
            <StopIcon />
          </button>
        )}
        {(!running || !isEmpty) && (
          <button
            type="submit"
            className="round-button"
            title={`${words.send} · ${words.enterSends}`}
            aria-label={words.send}
            disabled={isEmpty || isUploading}
          >
            <ArrowUpIcon />
          </button>
        )}
      </div>
    </form>
  );
}

/** The unfinished text of a place: kept while it is written, and taken from elsewhere when it is offered. */
function useText(unfinished: Unfinished, place: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => unfinished.text(place));
  const offer = useStore(offered, newest);
  const [taken, setTaken] = useState(offer?.id ?? 0);
  if (offer !== null && offer.id !== taken) {
    setTaken(offer.id);
    if (offer.place === place && (offer.how === "replace" || text === "")) setText(offer.text);
  }
  useEffect(() => unfinished.keepText(place, text), [unfinished, place, text]);
  return [text, setText];
}

/** What becomes of a message in between: what is chosen here, else what holds for the conversation or on the web. */
function useBusy(policy: BusyPolicy | null, running: boolean): [BusyPolicy, (busy: BusyPolicy) => void] {
  const [chosen, setChosen] = useState<BusyPolicy | null>(null);
  const { data } = useQuery({ queryKey: ["policies"], queryFn: calls.policies, enabled: running && policy === null });
  const set = data?.platforms.find(({ platform }) => platform === "web") ?? data?.default;
  const holds = policy ?? set?.busy ?? "queue";
  return [chosen ?? (holds === "reject" ? "queue" : holds), setChosen];
}

function BusyMenu({ busy, onChange }: { busy: BusyPolicy; onChange: (busy: BusyPolicy) => void }) {
  const names = { queue: words.busyQueue, steer: words.busySteer, interrupt: words.busyInterrupt, reject: "" };
  return (
    <Menu
      side="top"
      button={
        <button type="button" className="chip-button" title={words.whileRunning}>
          {names[busy]}
          <ChevronDownIcon />
        </button>
      }
    >
      <MenuChoices label={words.whileRunning} value={busy} onChange={(value) => onChange(value as BusyPolicy)}>
        <MenuChoice value="queue" hint={words.busyQueueHint}>
          {words.busyQueue}
        </MenuChoice>
        <MenuChoice value="steer" hint={words.busySteerHint}>
          {words.busySteer}
        </MenuChoice>
        <MenuChoice value="interrupt" hint={words.busyInterruptHint}>
          {words.busyInterrupt}
        </MenuChoice>
      </MenuChoices>
    </Menu>
  );
}

/** The list of commands that a text may become, and the keys that move in it. */
function useCompletion(text: string, setText: (text: string) => void) {
  const id = useId();
  const isCommand = text.startsWith("/");
  const { data } = useQuery({ queryKey: ["commands"], queryFn: calls.commands, enabled: isCommand, staleTime: Infinity });
  const [place, setPlace] = useState(0);
  const [closedAt, setClosedAt] = useState<string | null>(null);
  const found = closedAt === text ? NO_COMMANDS : completions(text, data?.commands ?? NO_COMMANDS);
  const chosen = found[Math.min(place, found.length - 1)];
  const isOpen = chosen !== undefined && completed(chosen) !== text;

  const take = (command: Command) => {
    setText(completed(command));
    setClosedAt(completed(command));
    setPlace(0);
  };

  /** Whether the key was for the list. */
  const onKeyDown = (event: KeyboardEvent): boolean => {
    if (!isOpen || (event.key === "Enter" && text === chosen.name)) return false; // it is written out: sent, not completed
    const keys: Record<string, () => void> = {
      ArrowDown: () => setPlace((place + 1) % found.length),
      ArrowUp: () => setPlace((place + found.length - 1) % found.length),
      Tab: () => take(chosen),
      Enter: () => take(chosen),
      Escape: () => setClosedAt(text),
    };
    const act = keys[event.key];
    if (act === undefined || event.shiftKey) return false;
    event.preventDefault();
    event.stopPropagation();
    act();
    return true;
  };

  const list = isOpen && (
    <ul className="completion" role="listbox" id={id} aria-label={words.commands}>
      {found.map((command) => (
        <li
          key={command.name}
          id={`${id}${command.name}`}
          role="option"
          aria-selected={command === chosen}
          ref={(element) => {
            if (command === chosen) element?.scrollIntoView({ block: "nearest" });
          }}
          onPointerDown={(event) => {
            event.preventDefault(); // the field keeps the focus
            take(command);
          }}
        >
          <b>{command.name}</b> <i>{command.usage}</i>
          <span>{command.summary}</span>
        </li>
      ))}
    </ul>
  );
  const field = isOpen
    ? ({ role: "combobox", "aria-expanded": true, "aria-controls": id, "aria-activedescendant": `${id}${chosen.name}` } as const)
    : {};
  return { list, field, onKeyDown };
}

/** Whether people write with their fingers here: then Enter is for new lines, and a button sends. */
function isTouch(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}
