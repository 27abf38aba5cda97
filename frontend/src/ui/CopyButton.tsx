/** Copies a text, and says that it did. */
import { useEffect, useState } from "react";
import { words } from "../words";
import { copy } from "./copying";
import { CheckIcon, CopyIcon } from "./icons";

export function CopyButton({ text, label = words.copy }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  return (
    <button
      type="button"
      className="icon-button small"
      title={done ? words.copied : label}
      aria-label={done ? words.copied : label}
      onClick={() => void copy(text).then(setDone)}
    >
      {done ? <CheckIcon /> : <CopyIcon />}
    </button>
  );
}
