/** What a person said: their words and files, who and when, and what can be done about it. */
import { memo, useState } from "react";
import type { LogEvent } from "../api/types";
import { clock, moment } from "../lib/time";
import { useCenter } from "../live/context";
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
  const [isEditing, setEditing] = useState(false);
  const text = textOf(event.message?.content ?? null);
  const isMine = event.person?.id === center.me.person.id;
  const author = event.message?.author?.name ?? event.person?.name ?? "";
  const isSystem = event.message?.role === "system";
  return (
    <article className={isSystem ? "said system" : "said"} aria-label={isMine ? words.you : author}>
      {(shared || !isMine) && author !== "" && <div className="author">{author}</div>}
      {isEditing ? (
        <Editing
          text={text}
          onCancel={() => setEditing(false)}
          onDone={async (changed) => {
            if (await editAndAsk(center, session, event.seq, changed)) setEditing(false);
          }}
        />
      ) : (
        <>
          <Files files={filesOf(event.message?.content ?? null)} all={center.everybodys.value} />
          {text !== "" && <Written text={text} />}
          <div className="message-foot">
            <MessageActions session={session} seq={event.seq} text={text} mayFork={mayAct}>
              {mayAct && (
                <button
                  type="button"
                  className="icon-button small"
                  title={words.editMessage}
                  aria-label={words.editMessage}
                  onClick={() => setEditing(true)}
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

function Editing(props: { text: string; onCancel: () => void; onDone: (text: string) => Promise<void> }) {
  const [text, setText] = useState(props.text);
  const [isBusy, setBusy] = useState(false);
  const send = () => {
    setBusy(true);
    void props.onDone(text.trim()).finally(() => setBusy(false));
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
        autoFocus
        dir="auto"
        value={text}
        aria-label={words.editMessage}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") props.onCancel();
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) send();
        }}
      />
      <p className="hint">{words.editHint}</p>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={props.onCancel}>
          {words.cancel}
        </button>
        <button type="submit" className="button primary" disabled={isBusy || text.trim() === ""}>
          {words.sendEdited}
        </button>
      </div>
    </form>
  );
}
