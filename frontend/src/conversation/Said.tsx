/** What a person said: their words and files, who and when, and what can be done about it. */
import { memo, useState } from "react";
import type { LogEvent } from "../api/types";
import { clock, moment } from "../lib/time";
import { useCenter, useMe } from "../live/context";
import { Written } from "../markdown/Written";
import { EditIcon } from "../ui/icons";
import { words } from "../words";
import { editAndAsk } from "./actions";
import { Files } from "./Attachments";
import { GoesTo } from "./Delivered";
import { filesOf, textOf } from "./content";
import { MessageActions } from "./MessageActions";

interface Props {
  session: string;
  event: LogEvent;
  shared: boolean;
  mayAct: boolean;
  goesTo: string | null; // the platform it goes to with its answer
}

export const Said = memo(function Said({ session, event, shared, mayAct, goesTo }: Props) {
  const center = useCenter();
  const me = useMe();
  const [edit, setEdit, wasJustBegun] = useEdit(session, event.seq);
  const text = textOf(event.message?.content ?? null);
  const files = <Files files={filesOf(event.message?.content ?? null)} all={center.everybodys.value} />;
  const isMine = event.person?.id === me.person.id;
  const author = event.message?.author?.name ?? event.person?.name ?? "";
  const isSystem = event.message?.role === "system";
  return (
    <article className={isSystem ? "said system" : "said"} aria-label={isMine ? words.you : author}>
      {(shared || !isMine) && author !== "" && <div className="author">{author}</div>}
      {files}
      {edit !== null ? (
        <Editing
          text={edit}
          takesFocus={wasJustBegun}
          onChange={setEdit}
          onCancel={() => setEdit(null)}
          onDone={async () => {
            if (await editAndAsk(center, session, event, edit.trim())) setEdit(null);
          }}
        />
      ) : (
        <>
          {text !== "" && <Written text={text} />}
          <div className="message-foot">
            <MessageActions session={session} seq={event.seq} text={text} mayFork={mayAct}>
              {mayAct && (
                <button
                  type="button"
                  className="icon-button small"
                  title={words.editMessage}
                  aria-label={words.editMessage}
                  onClick={() => setEdit(text)}
                >
                  <EditIcon />
                </button>
              )}
            </MessageActions>
            <time dateTime={event.at} title={moment(event.at)}>
              {clock(event.at)}
            </time>
            {goesTo !== null && <GoesTo platform={goesTo} />}
          </div>
        </>
      )}
    </article>
  );
});

/** A message as it is being changed, also when it was scrolled out of sight; and whether that began just now. */
function useEdit(session: string, seq: number): [string | null, (text: string | null) => void, boolean] {
  const { unfinished } = useCenter();
  const [edit, setEdit] = useState(() => unfinished.edit(session, seq));
  const [wasJustBegun, setJustBegun] = useState(false);
  const change = (text: string | null) => {
    unfinished.keepEdit(session, seq, text);
    setEdit(text);
    setJustBegun(true);
  };
  return [edit, change, wasJustBegun];
}

interface EditingProps {
  text: string;
  takesFocus: boolean;
  onChange: (text: string) => void;
  onCancel: () => void;
  onDone: () => Promise<void>;
}

function Editing({ text, takesFocus, onChange, onCancel, onDone }: EditingProps) {
  const [isBusy, setBusy] = useState(false);
  const isReady = !isBusy && text.trim() !== "";
  const send = () => {
    if (!isReady) return;
    setBusy(true);
    void onDone().finally(() => setBusy(false));
  };
  return (
    <form
      className="editing"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        autoFocus={takesFocus}
        dir="auto"
        value={text}
        aria-label={words.editMessage}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Escape") onCancel();
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) send();
        }}
      />
      <p className="hint">{words.editHint}</p>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={onCancel}>
          {words.cancel}
        </button>
        <button type="submit" className="button primary" disabled={!isReady}>
          {words.sendEdited}
        </button>
      </div>
    </form>
  );
}
