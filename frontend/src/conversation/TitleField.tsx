/** A title that is changed where it stands. */
import { useState } from "react";
import { words } from "../words";

interface Props {
  title: string;
  onDone: (title: string | null) => void; // null: as it was
  className?: string;
}

export function TitleField({ title, onDone, className = "title-field" }: Props) {
  const [text, setText] = useState(title);
  const done = () => onDone(text.trim() === title ? null : text.trim());
  return (
    <input
      className={className}
      autoFocus
      dir="auto"
      value={text}
      maxLength={100}
      aria-label={words.titleOf}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setText(event.target.value)}
      onBlur={done}
      onClick={(event) => event.stopPropagation()}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.nativeEvent.isComposing) return;
        if (event.key === "Enter") done();
        if (event.key === "Escape") onDone(null);
      }}
    />
  );
}
