/** The text field for a memory. Enter saves, Shift+Enter starts a new line. */
import { words } from "../../words";

const MAX_MEMORY_CHARS = 2000; // the server's limit

interface Props {
  text: string;
  label: string;
  autoFocus?: boolean;
  onChange: (text: string) => void;
  onDone: () => void;
  onCancel?: () => void;
}

export function MemoryField({ text, label, autoFocus = false, onChange, onDone, onCancel }: Props) {
  return (
    <textarea
      className="memory-field"
      rows={1}
      dir="auto"
      value={text}
      autoFocus={autoFocus}
      maxLength={MAX_MEMORY_CHARS}
      placeholder={words.memoryExample}
      aria-label={label}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing) return;
        if (event.key === "Escape") onCancel?.();
        if (event.key !== "Enter" || event.shiftKey) return;
        event.preventDefault();
        onDone();
      }}
    />
  );
}
