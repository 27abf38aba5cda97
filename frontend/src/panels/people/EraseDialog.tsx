/** Asks an owner to type the name of the person who is erased, after showing how much would go. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { formatCount } from "../../format/numbers";
import { Dialog } from "../../ui/Dialog";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import * as calls from "../shared/calls";

interface Props {
  id: string;
  name: string;
  onClose: () => void;
  onErased: () => Promise<unknown>;
}

export function EraseDialog({ id, name, onClose, onErased }: Props) {
  const [typed, setTyped] = useState("");
  const [isRunning, setRunning] = useState(false);
  const runOnce = useSingleFlight();
  const query = useQuery({ queryKey: ["erasure", id], queryFn: () => calls.previewErasure(id), gcTime: 0 });
  const erase = () =>
    runOnce(async () => {
      setRunning(true);
      const worked = await attempt(() => calls.erasePerson(id, typed.trim()));
      setRunning(false);
      if (worked) {
        toast(words.personErased(name));
        onClose();
      }
      await onErased();
    });
  const isConfirmed = typed.trim().toLowerCase() === name.trim().toLowerCase();
  return (
    <Dialog label={words.erasePersonTitle(name)} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void erase();
        }}
      >
        <h2>{words.erasePersonTitle(name)}</h2>
        <p>{words.erasePersonText}</p>
        {query.isError ? <p role="alert">{query.error.message}</p> : <Counts counts={query.data?.counts ?? null} />}
        <label className="field">
          {words.erasePersonName(name)}
          <input value={typed} dir="auto" autoFocus required maxLength={500} onChange={(event) => setTyped(event.target.value)} />
        </label>
        <div className="dialog-actions">
          <button type="button" className="button" onClick={onClose}>
            {words.cancel}
          </button>
          <button type="submit" className="button danger" disabled={!isConfirmed || isRunning || query.data === undefined}>
            {isRunning ? words.personErasing : words.erasePersonAction}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** The kinds of which there is something. */
function Counts({ counts }: { counts: Record<string, number> | null }) {
  if (counts === null) return <p aria-live="polite">{words.erasePersonLoading}</p>;
  const lines = Object.entries(words.eraseCounts).flatMap(([kind, format]) => {
    const count = counts[kind] ?? 0;
    return count > 0 ? [format(formatCount(count))] : [];
  });
  if (lines.length === 0) return <p>{words.erasePersonNothing}</p>;
  return (
    <ul className="erase-counts">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}
