/** Copies a text, and shows for a moment that it did. */
import { useEffect, useState } from "react";
import { words } from "../words";
import { copyText } from "./clipboard";
import { CheckIcon, CopyIcon } from "./icons";

const FEEDBACK_MS = 1500;

export function CopyButton({ text, label = words.copy }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), FEEDBACK_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <button
      type="button"
      className="icon-button small"
      title={isCopied ? words.copied : label}
      aria-label={isCopied ? words.copied : label}
      onClick={() => void copyText(text).then(setCopied)}
    >
      {isCopied ? <CheckIcon /> : <CopyIcon />}
    </button>
  );
}
