/** One memory, which can be edited in place. */
import { useEffect, useRef, useState } from "react";
import { attempt } from "../../api/attempt";
import { formatDateTime } from "../../format/time";
import { confirm } from "../../ui/ConfirmDialog";
import { EditIcon, TrashIcon } from "../../ui/icons";
import { Link } from "../../ui/Link";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import type { Memory } from "../shared/calls";
import * as calls from "../shared/calls";
import { describeAudience, describeMemory } from "./descriptions";
import { MemoryField } from "./MemoryField";

interface Props {
  memory: Memory;
  onChange: () => Promise<unknown>;
}

export function MemoryRow({ memory, onChange }: Props) {
  const [edited, setEdited] = useState<string | null>(null);
  const editButton = useRef<HTMLButtonElement>(null);
  const wasEditing = useRef(false);
  const isEditing = edited !== null;
  useEffect(() => {
    if (wasEditing.current && !isEditing) editButton.current?.focus(); // return the focus
    wasEditing.current = isEditing;
  }, [isEditing]);
  const cancel = () => setEdited(null);
  const runOnce = useSingleFlight();
  const saveEdit = async () => {
    const text = edited?.trim() ?? "";
    if (text !== "" && text !== memory.text) {
      if (!(await attempt(() => calls.updateMemory(memory.id, text)))) return;
      await onChange();
    }
    cancel();
  };
  const save = () => void runOnce(saveEdit);
  return (
    <li className="card-row memory-row">
      {!isEditing ? (
        <>
          <div className="card-row-text">
            <p dir="auto" className="memory-text">
              {memory.text}
            </p>
            <small title={formatDateTime(memory.created_at)}>
              {memory.shared && <span className="tag">{words.memoryShared}</span>} {describeMemory(memory)}
              {memory.session_id !== null && (
                <>
                  {" · "}
                  <Link to={memory.session_id}>{words.memoryConversation}</Link>
                </>
              )}
            </small>
          </div>
          <button
            ref={editButton}
            type="button"
            className="icon-button"
            title={words.memoryEdit}
            aria-label={words.memoryEditLabel(memory.text)}
            onClick={() => setEdited(memory.text)}
          >
            <EditIcon />
          </button>
          <button
            type="button"
            className="icon-button"
            title={words.memoryDelete}
            aria-label={words.memoryDeleteLabel(memory.text)}
            onClick={() => void deleteMemory(memory, onChange)}
          >
            <TrashIcon />
          </button>
        </>
      ) : (
        <form
          className="memory-form"
          onSubmit={(event) => {
            event.preventDefault();
            save();
          }}
        >
          <MemoryField
            autoFocus
            text={edited}
            label={words.memoryEdit}
            onChange={setEdited}
            onDone={save}
            onCancel={cancel}
          />
          {memory.shared && <p className="hint">{words.memoryEditForAll(describeAudience(memory))}</p>}
          <div className="memory-actions">
            <button type="button" className="button" onClick={cancel}>
              {words.cancel}
            </button>
            <button type="submit" className="button primary" disabled={edited.trim() === ""}>
              {words.save}
            </button>
          </div>
        </form>
      )}
    </li>
  );
}

/** A private memory can be restored afterwards. A shared one belongs to others too, so the person has to confirm first. */
async function deleteMemory(memory: Memory, onChange: () => Promise<unknown>): Promise<void> {
  if (memory.shared) {
    const question = { title: words.memoryDeleteTitle, text: words.memoryDeleteText(describeAudience(memory)), action: words.memoryDelete };
    if (!(await confirm(question))) return;
  }
  if (await attempt(() => calls.deleteMemory(memory.id))) {
    const restore = () => void attempt(() => calls.createMemory(memory.text)).then(onChange);
    toast(words.memoryDeleted, memory.shared ? null : { label: words.undo, act: restore });
  }
  await onChange();
}
