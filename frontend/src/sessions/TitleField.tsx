/** A field that changes the title of a conversation in place. */
import { useState } from "react";
import { words } from "../words";

const MAX_TITLE_CHARS = 100;

interface Props {
  title: string;
  onDone: (title: string | null) => void; // null: it was not changed
  className?: string;
}

export function TitleField({ title, onDone, className = "title-field" }: Props) {
  const [text, setText] = useState(title);
  const finish = () => onDone(text.trim() === title ? null : text.trim());
  return (
    <input
      className={className}
      autoFocus
      dir="auto"
      value={text}
      maxLength={MAX_TITLE_CHARS}
      aria-label={words.conversationTitle}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setText(event.target.value)}
      onBlur={finish}
      onClick={(event) => event.stopPropagation()}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.nativeEvent.isComposing) return;
        if (event.key === "Enter") finish();
        if (event.key === "Escape") onDone(null);
      }}
    />
  );
}
