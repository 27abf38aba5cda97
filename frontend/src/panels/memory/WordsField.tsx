/** A few words that are to be remembered: Enter is done, Shift and Enter begins another line. */
import { words } from "../../words";

const LONGEST = 2000; // characters that the server takes

interface Props {
  text: string;
  label: string;
  autoFocus?: boolean;
  onChange: (text: string) => void;
  onDone: () => void;
  onCancel?: () => void;
}

export function WordsField({ text, label, autoFocus = false, onChange, onDone, onCancel }: Props) {
  return (
    <textarea
      className="words-field"
      rows={1}
      dir="auto"
      value={text}
      autoFocus={autoFocus}
      maxLength={LONGEST}
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
