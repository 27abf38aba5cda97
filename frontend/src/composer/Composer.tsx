/** The field in which people write messages and commands and add files. */
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState, type ClipboardEvent, type Dispatch, type KeyboardEvent, type SetStateAction } from "react";
import * as calls from "../api/calls";
import type { BusyPolicy } from "../api/types";
import { focusNewField } from "../layout/focus";
import { useStore } from "../lib/store";
import { useLiveClient } from "../live/context";
import type { ComposerDrafts } from "../outbox/composerDrafts";
import type { OutboxEntry } from "../outbox/entries";
import { textSuggestion } from "../outbox/textSuggestions";
import { ArrowUpIcon, ChevronDownIcon, PaperclipIcon, StopIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices } from "../ui/Menu";
import { toast } from "../ui/toasts";
import { words } from "../words";
import { DraftFiles } from "./Attachments";
import { readPastedFiles } from "./pastedFiles";
import { PromptMenu, usePromptInsertion } from "./SavedPrompts";
import { isComposing, isSendKey, isTouch } from "./sendKey";
import { useCompletion } from "./useCompletion";
import { VoiceButton } from "./VoiceButton";
import "./Composer.css";

interface Props {
  draftId: string; // a session id or `NEW_DRAFT`
  placeholder: string;
  isRunning: boolean; // whether the agent is answering
  policy: BusyPolicy | null; // the conversation's own busy policy
  onSend: (message: Pick<OutboxEntry, "text" | "attachments" | "busy">) => void;
  onStop?: () => void;
  isTextOnly?: boolean; // no files and no commands, and nothing can be sent while the agent answers
}

export function Composer({ draftId, placeholder, isRunning, policy, onSend, onStop, isTextOnly = false }: Props) {
  const { composerDrafts: drafts } = useLiveClient();
  const [text, setText] = useDraftText(drafts, draftId);
  const files = useStore(
    drafts.files,
    useCallback(() => drafts.getFiles(draftId), [drafts, draftId]),
  );
  const [busy, setBusy] = useBusyPolicy(policy, isRunning && !isTextOnly);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isUploading = files.some((file) => file.uploaded === null);
  const isEmpty = text.trim() === "" && files.length === 0;
  const prompts = usePromptInsertion((filled) => {
    setText(text.trim() === "" || text.startsWith("/") ? filled : `${text}\n${filled}`);
    field.current?.focus();
  });
  const completion = useCompletion(isTextOnly ? "" : text, setText, prompts.choose);

  useEffect(() => {
    if (!isTouch() && field.current !== null) focusNewField(field.current); // on a touch screen a keyboard would cover the page
  }, []);

  const send = () => {
    if (isTextOnly && isRunning) return;
    const current = drafts.getFiles(draftId); // `files` is one frame late
    if ((text.trim() === "" && current.length === 0) || current.some((file) => file.uploaded === null)) return;
    const attachments = current.flatMap((file) => file.uploaded ?? []);
    onSend({ text: text.trim(), attachments, ...(isRunning && { busy }) });
    setText("");
    drafts.clearFiles(draftId);
    field.current?.focus();
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (isComposing(event) || completion.onKeyDown(event) || !isSendKey(event)) return;
    event.preventDefault();
    send();
  };

  const onPaste = (event: ClipboardEvent) => {
    const pasted = readPastedFiles(event.clipboardData);
    if (pasted.length === 0) return;
    event.preventDefault();
    if (isTextOnly) toast(words.temporaryNoFiles);
    else drafts.addFiles(draftId, pasted);
  };

  return (
    <>
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
          autoComplete={isTextOnly ? "off" : undefined} // browsers would restore the text when the page is loaded again
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
          {!isTextOnly && (
            <button
              type="button"
              className="icon-button"
              title={words.addFiles}
              aria-label={words.addFiles}
              onClick={() => picker.current?.click()}
            >
              <PaperclipIcon />
            </button>
          )}
          {!isTextOnly && <PromptMenu onChoose={prompts.choose} />}
          {!isTextOnly && (
            <VoiceButton
              canSend={isEmpty}
              onText={(spoken) => {
                setText((current) => (current.trim() === "" ? spoken : `${current.trimEnd()} ${spoken}`)); // it may have changed meanwhile
                field.current?.focus();
              }}
              onVoice={(file) => onSend({ text: "", attachments: [file], ...(isRunning && { busy }) })}
              onFailure={(file) => drafts.restoreFiles(draftId, [file])}
            />
          )}
          <span className="spacer" />
          {isRunning && !isTextOnly && <BusyMenu busy={busy} onChange={setBusy} />}
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
          {(!isRunning || (!isEmpty && !isTextOnly)) && (
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
      {prompts.dialog}
    </>
  );
}

/** The text of a draft. It is stored while a person types, and changes when another part of the page suggests one. */
function useDraftText(drafts: ComposerDrafts, draftId: string): [string, Dispatch<SetStateAction<string>>] {
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
