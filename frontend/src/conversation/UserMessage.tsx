/** A message of a person or the system: text and files, author and time, and actions. */
import { memo, useEffect, useRef, useState } from "react";
import { readFiles, readText } from "../api/messageContent";
import type { LogEvent, Message } from "../api/types";
import { AlsoSentTo } from "../composer/AlsoSentTo";
import { MessageFiles } from "../composer/Attachments";
import { isComposing, isSendKey, isTouch } from "../composer/sendKey";
import { formatDateTime, formatTime } from "../format/time";
import { focusComposer } from "../layout/focus";
import { useLiveClient, useMe } from "../live/context";
import UserText from "../markdown/UserText";
import { editInFork, editInPlace } from "../sessions/actions";
import { EditIcon } from "../ui/icons";
import { words } from "../words";
import { Fold } from "./Fold";
import { isLongMessage } from "./folding";
import { MessageActions } from "./MessageActions";
import { VersionSwitch } from "./VersionSwitch";
import type { VersionPlace } from "./versionPlaces";
import "../composer/message.css";
import "./UserMessage.css";

interface Props {
  sessionId: string;
  rowKey: string;
  event: LogEvent;
  isShared: boolean; // the conversation has several people
  canAct: boolean;
  isAnswering: boolean; // the agent, so that no other version can be sent or chosen
  versions: VersionPlace | undefined;
  alsoSentTo: string | null; // the platform that the message goes to together with its answer
}

export const UserMessage = memo(function UserMessage(props: Props) {
  const { sessionId, rowKey, event, isShared, canAct, isAnswering, versions, alsoSentTo } = props;
  const client = useLiveClient();
  const me = useMe();
  const [edit, setEdit, hasJustStarted] = useEdit(sessionId, event.seq);
  const editButton = useRef<HTMLButtonElement>(null);
  const wasEditing = useRef(false);
  const isEditing = edit !== null;
  useEffect(() => {
    if (wasEditing.current && !isEditing && document.activeElement === document.body) editButton.current?.focus();
    wasEditing.current = isEditing;
  }, [isEditing]);
  const text = readText(event.message?.content ?? null);
  const files = <MessageFiles files={readFiles(event.message?.content ?? null)} all={client.showsAll.value} />;
  const isMine = event.person?.id === me.person.id;
  const author = isMine ? words.you : (event.message?.author?.name ?? event.person?.name ?? "");
  const isSystem = event.message?.role === "system";
  return (
    <article className={isSystem ? "user-message system" : "user-message"} aria-label={author}>
      {(isShared || !isMine) && author !== "" && <div className="author">{author}</div>}
      <Quotes message={event.message} />
      {files}
      {edit !== null ? (
        <EditForm
          text={edit}
          takesFocus={hasJustStarted}
          onChange={setEdit}
          onCancel={() => setEdit(null)}
          canReplace={isMine && !isAnswering}
          onDone={async (isBranch) => {
            const send = isBranch ? editInFork(client, sessionId, event, edit.trim()) : editInPlace(sessionId, event, edit.trim());
            if (!(await send)) return;
            setEdit(null);
            if (!isTouch()) focusComposer(); // this message is replaced by its new version
          }}
        />
      ) : (
        <>
          {text !== "" && (
            <Fold rowKey={rowKey} part={0} isLong={isLongMessage(text)}>
              <UserText text={text} />
            </Fold>
          )}
          <div className="message-foot">
            {versions !== undefined && <VersionSwitch sessionId={sessionId} place={versions} canAct={canAct && !isAnswering} />}
            <MessageActions sessionId={sessionId} seq={event.seq} text={text} canFork={canAct}>
              {canAct && (
                <button
                  ref={editButton}
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
            <time dateTime={event.at} title={formatDateTime(event.at)}>
              {formatTime(event.at)}
            </time>
            {event.message?.edited === true && <span className="edited">{words.edited}</span>}
            {alsoSentTo !== null && <AlsoSentTo platform={alsoSentTo} />}
          </div>
        </>
      )}
    </article>
  );
});

/** What was said in the group before a message, and what the message replies to. */
function Quotes({ message }: { message: Message | null }) {
  const { context, replied_message: replied } = message ?? {};
  const repliedText = replied?.text ?? "";
  return (
    <>
      {context != null && context.length > 0 && (
        <details className="quoted-messages">
          <summary>{words.saidBefore(context.length)}</summary>
          {context.map(({ author, text }, index) => (
            <p key={index} dir="auto">
              <b>{author}</b> {text}
            </p>
          ))}
        </details>
      )}
      {repliedText !== "" && (
        <details className="quoted-messages">
          <summary>{words.replyTo(replied?.author ?? "")}</summary>
          <p dir="auto">{repliedText}</p>
        </details>
      )}
    </>
  );
}

/** The edited text of a message, which survives scrolling out of sight, and whether the edit has just started. */
function useEdit(sessionId: string, seq: number): [string | null, (text: string | null) => void, boolean] {
  const { composerDrafts: drafts } = useLiveClient();
  const [edit, setEdit] = useState(() => drafts.getEdit(sessionId, seq));
  const [hasJustStarted, setJustStarted] = useState(false);
  const change = (text: string | null) => {
    drafts.setEdit(sessionId, seq, text);
    setEdit(text);
    setJustStarted(true);
  };
  return [edit, change, hasJustStarted];
}

interface EditFormProps {
  text: string;
  takesFocus: boolean;
  onChange: (text: string) => void;
  onCancel: () => void;
  canReplace: boolean; // otherwise it can be sent in a new branch only
  onDone: (isBranch: boolean) => Promise<void>;
}

function EditForm({ text, takesFocus, canReplace, onChange, onCancel, onDone }: EditFormProps) {
  const [isBusy, setBusy] = useState(false);
  const isReady = !isBusy && text.trim() !== "";
  const send = (isBranch: boolean) => {
    if (!isReady) return;
    setBusy(true);
    void onDone(isBranch).finally(() => setBusy(false));
  };
  return (
    <form
      className="edit-form"
      onSubmit={(event) => {
        event.preventDefault();
        send(!canReplace);
      }}
    >
      <textarea
        autoFocus={takesFocus}
        dir="auto"
        value={text}
        aria-label={words.editMessage}
        enterKeyHint={isTouch() ? "enter" : "send"}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (isComposing(event)) return;
          if (event.key === "Escape") onCancel();
          if (!isSendKey(event)) return;
          event.preventDefault();
          send(!canReplace);
        }}
      />
      <p className="hint">{canReplace ? words.editHint : words.editBranchHint}</p>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={onCancel}>
          {words.cancel}
        </button>
        {canReplace && (
          <button type="button" className="button" disabled={!isReady} onClick={() => send(true)}>
            {words.sendInBranch}
          </button>
        )}
        <button type="submit" className="button primary" title={words.enterKeyHint} disabled={!isReady}>
          {canReplace ? words.send : words.sendInBranch}
        </button>
      </div>
    </form>
  );
}
