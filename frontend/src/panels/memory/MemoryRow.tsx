/** One thing that is remembered, changed where it stands. */
import { useEffect, useRef, useState } from "react";
import { attempt } from "../../conversation/actions";
import { moment } from "../../lib/time";
import { confirm } from "../../ui/confirm";
import { EditIcon, TrashIcon } from "../../ui/icons";
import { toast } from "../../ui/toasts";
import { useOnce } from "../../ui/useOnce";
import { words } from "../../words";
import * as calls from "../calls";
import type { Memory } from "../calls";
import { circleOf, factsOf } from "./telling";
import { WordsField } from "./WordsField";

interface Props {
  memory: Memory;
  onChanged: () => Promise<unknown>;
}

export function MemoryRow({ memory, onChanged }: Props) {
  const [changed, setChanged] = useState<string | null>(null);
  const edit = useRef<HTMLButtonElement>(null);
  const wasChanging = useRef(false);
  const isChanging = changed !== null;
  useEffect(() => {
    if (wasChanging.current && !isChanging) edit.current?.focus(); // where it came from
    wasChanging.current = isChanging;
  }, [isChanging]);
  const leave = () => setChanged(null);
  const once = useOnce();
  const change = async () => {
    const text = changed?.trim() ?? "";
    if (text !== "" && text !== memory.text) {
      if (!(await attempt(() => calls.changeMemory(memory.id, text)))) return;
      await onChanged();
    }
    leave();
  };
  const save = () => void once(change);
  return (
    <li className="card-row memory-row">
      {!isChanging ? (
        <>
          <div className="card-row-text">
            <p dir="auto" className="memory-text">
              {memory.text}
            </p>
            <small title={moment(memory.created_at)}>
              {memory.shared && <span className="tag">{words.memoryShared}</span>} {factsOf(memory)}
            </small>
          </div>
          <button
            ref={edit}
            type="button"
            className="icon-button"
            title={words.memoryChange}
            aria-label={words.memoryChangeThis(memory.text)}
            onClick={() => setChanged(memory.text)}
          >
            <EditIcon />
          </button>
          <button
            type="button"
            className="icon-button"
            title={words.memoryForget}
            aria-label={words.memoryForgetThis(memory.text)}
            onClick={() => void forget(memory, onChanged)}
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
          <WordsField
            autoFocus
            text={changed}
            label={words.memoryChange}
            onChange={setChanged}
            onDone={save}
            onCancel={leave}
          />
          {memory.shared && <p className="hint">{words.memoryForAll(circleOf(memory))}</p>}
          <div className="memory-actions">
            <button type="button" className="button" onClick={leave}>
              {words.cancel}
            </button>
            <button type="submit" className="button primary" disabled={changed.trim() === ""}>
              {words.save}
            </button>
          </div>
        </form>
      )}
    </li>
  );
}

/** What is one's own can be remembered again; what is shared is others' too, so it is asked about before. */
async function forget(memory: Memory, onChanged: () => Promise<unknown>): Promise<void> {
  if (memory.shared) {
    const question = { title: words.memoryForgetTitle, text: words.memoryForgetText(circleOf(memory)), action: words.memoryForget };
    if (!(await confirm(question))) return;
  }
  if (await attempt(() => calls.forgetMemory(memory.id))) {
    const again = () => void attempt(() => calls.remember(memory.text)).then(onChanged);
    toast(words.memoryForgotten, memory.shared ? null : { label: words.takeBack, act: again });
  }
  await onChanged();
}
