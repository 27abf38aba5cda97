/** The field in which people write messages and commands and add files. */
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useId, useRef, useState, type ClipboardEvent, type KeyboardEvent } from "react";
import * as calls from "../api/calls";
import type { BusyPolicy, Command } from "../api/types";
import { useStore } from "../lib/store";
import { useLiveClient } from "../live/context";
import type { ComposerDrafts } from "../outbox/composerDrafts";
import type { OutboxEntry } from "../outbox/entries";
import { textSuggestion } from "../outbox/textSuggestions";
import { ArrowUpIcon, ChevronDownIcon, PaperclipIcon, StopIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices } from "../ui/Menu";
import { words } from "../words";
import { DraftFiles } from "./Attachments";
import { completeCommand, findCompletions } from "./completion";
import { readPastedFiles } from "./pastedFiles";

interface Props {
  draftId: string; // a session id or `NEW_DRAFT`
  placeholder: string;
  isRunning: boolean; // whether the agent is answering
  policy: BusyPolicy | null; // the conversation's own busy policy
  onSend: (message: Pick<OutboxEntry, "text" | "attachments" | "busy">) => void;
  onStop?: () => void;
}

const NO_COMMANDS: readonly Command[] = [];

export function Composer({ draftId, placeholder, isRunning, policy, onSend, onStop }: Props) {
  const { composerDrafts: drafts } = useLiveClient();
  const [text, setText] = useDraftText(drafts, draftId);
  const files = useStore(
    drafts.files,
    useCallback(() => drafts.getFiles(draftId), [drafts, draftId]),
  );
  const [busy, setBusy] = useBusyPolicy(policy, isRunning);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isUploading = files.some((file) => file.uploaded === null);
  const isEmpty = text.trim() === "" && files.length === 0;
  const completion = useCompletion(text, setText);

  const send = () => {
    const current = drafts.getFiles(draftId); // `files` is one frame late
    if ((text.trim() === "" && current.length === 0) || current.some((file) => file.uploaded === null)) return;
    const attachments = current.flatMap((file) => file.uploaded ?? []);
    onSend({ text: text.trim(), attachments, ...(isRunning && { busy }) });
    setText("");
    drafts.clearFiles(draftId);
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
    const pasted = readPastedFiles(event.clipboardData);
    if (pasted.length === 0) return;
    event.preventDefault();
    drafts.addFiles(draftId, pasted);
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
      <DraftFiles files={files} onRemove={(id) => drafts.removeFile(draftId, id)} />
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
            drafts.addFiles(draftId, event.target.files ?? []);
            event.target.value = "";
          }}
        />
        <button
          type="button"
          className="icon-button"
          title={words.addFiles}
          aria-label={words.addFiles}
          onClick={() => picker.current?.click()}
        >
          <PaperclipIcon />
        </button>
        <span className="spacer" />
        {isRunning && <BusyMenu busy={busy} onChange={setBusy} />}
        {isRunning && onStop !== undefined && (
          <button
            type="button"
            className="round-button stop"
            title={words.stopAnswer}
            aria-label={words.stopAnswer}
            onClick={onStop}
          >
            <StopIcon />
          </button>
        )}
        {(!isRunning || !isEmpty) && (
          <button
            type="submit"
            className="round-button"
            title={`${words.send} · ${words.enterKeyHint}`}
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

/** The text of a draft. It is stored while a person types, and changes when another part of the page suggests one. */
function useDraftText(drafts: ComposerDrafts, draftId: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => drafts.getText(draftId));
  const suggestion = useStore(textSuggestion);
  const [handledId, setHandledId] = useState(suggestion?.id ?? 0);
  if (suggestion !== null && suggestion.id !== handledId) {
    setHandledId(suggestion.id);
    if (suggestion.draftId === draftId && (suggestion.mode === "replace" || text === "")) setText(suggestion.text);
  }
  useEffect(() => drafts.setText(draftId, text), [drafts, draftId, text]);
  return [text, setText];
}

/** What happens with a message while the agent answers: the choice made here, or the policy of the conversation or the web. */
function useBusyPolicy(policy: BusyPolicy | null, isRunning: boolean): [BusyPolicy, (busy: BusyPolicy) => void] {
  const [chosen, setChosen] = useState<BusyPolicy | null>(null);
  const { data } = useQuery({ queryKey: ["policies"], queryFn: calls.getPolicies, enabled: isRunning && policy === null });
  const configured = data?.platforms.find(({ platform }) => platform === "web") ?? data?.default;
  const current = policy ?? configured?.busy_policy ?? "queue";
  return [chosen ?? (current === "reject" ? "queue" : current), setChosen];
}

function BusyMenu({ busy, onChange }: { busy: BusyPolicy; onChange: (busy: BusyPolicy) => void }) {
  const names = { queue: words.busyQueue, steer: words.busySteer, interrupt: words.busyInterrupt, reject: "" };
  return (
    <Menu
      side="top"
      button={
        <button type="button" className="chip-button" title={words.whileAnswering}>
          {names[busy]}
          <ChevronDownIcon />
        </button>
      }
    >
      <MenuChoices label={words.whileAnswering} value={busy} onChange={(value) => onChange(value as BusyPolicy)}>
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

/** The list of commands that start with the text, and the keys that control it. */
function useCompletion(text: string, setText: (text: string) => void) {
  const id = useId();
  const isCommand = text.startsWith("/");
  const { data } = useQuery({ queryKey: ["commands"], queryFn: calls.listCommands, enabled: isCommand, staleTime: Infinity });
  const [index, setIndex] = useState(0);
  const [closedFor, setClosedFor] = useState<string | null>(null); // the text for which the list was closed
  const matches = closedFor === text ? NO_COMMANDS : findCompletions(text, data?.commands ?? NO_COMMANDS);
  const highlighted = matches[Math.min(index, matches.length - 1)];
  const isOpen = highlighted !== undefined && completeCommand(highlighted) !== text;

  const complete = (command: Command) => {
    setText(completeCommand(command));
    setClosedFor(completeCommand(command));
    setIndex(0);
  };

  /** Returns whether the list handled the key. */
  const onKeyDown = (event: KeyboardEvent): boolean => {
    if (!isOpen || (event.key === "Enter" && text === highlighted.name)) return false; // a complete command is sent
    const keys: Record<string, () => void> = {
      ArrowDown: () => setIndex((index + 1) % matches.length),
      ArrowUp: () => setIndex((index + matches.length - 1) % matches.length),
      Tab: () => complete(highlighted),
      Enter: () => complete(highlighted),
      Escape: () => setClosedFor(text),
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
      {matches.map((command) => (
        <li
          key={command.name}
          id={`${id}${command.name}`}
          role="option"
          aria-selected={command === highlighted}
          ref={(element) => {
            if (command === highlighted) element?.scrollIntoView({ block: "nearest" });
          }}
          onPointerDown={(event) => {
            event.preventDefault(); // the field keeps the focus
            complete(command);
          }}
        >
          <b>{command.name}</b> <i>{command.usage}</i>
          <span>{command.summary}</span>
        </li>
      ))}
    </ul>
  );
  const field = isOpen
    ? ({
        role: "combobox",
        "aria-expanded": true,
        "aria-controls": id,
        "aria-activedescendant": `${id}${highlighted.name}`,
      } as const)
    : {};
  return { list, field, onKeyDown };
}

/** On a touch screen, Enter starts a new line and a button sends. */
function isTouch(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}
