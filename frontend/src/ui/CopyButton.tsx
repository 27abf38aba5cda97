/** Copies a text, and says that it did. */
import { useEffect, useState } from "react";
import { words } from "../words";
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
      onClick={() => void copy(text).then(() => setDone(true))}
    >
      {done ? <CheckIcon /> : <CopyIcon />}
    </button>
  );
}

/** Put a text on the clipboard; also where the page is not served securely, as on a home network. */
export async function copy(text: string): Promise<void> {
  if (window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  document.body.append(field);
  field.select();
  document.execCommand("copy"); // eslint-disable-line @typescript-eslint/no-deprecated -- the only way there
  field.remove();
}
