/** Moves through the results of a search with the keys of its field. */
import { useEffect, useEffectEvent, useRef, useState, type KeyboardEvent } from "react";

interface ResultKeys {
  highlighted: number; // index of the result
  onKeyDown: (event: KeyboardEvent) => void;
}

/**
 * `text` is what is searched for: the first result is highlighted whenever it changes. Enter opens the highlighted result, as
 * soon as the results are complete. `onLeave` is called by Escape.
 */
export function useResultKeys(text: string, count: number, isDone: boolean, open: (index: number) => void, onLeave: () => void): ResultKeys {
  const [position, setPosition] = useState({ text, index: 0 });
  const awaitedText = useRef<string | null>(null); // Enter was pressed before its results were there
  const index = position.text === text ? Math.max(0, Math.min(position.index, count - 1)) : 0;
  const openAwaited = useEffectEvent(() => {
    if (awaitedText.current === text && count > 0) open(index);
    awaitedText.current = null;
  });
  useEffect(() => {
    if (isDone) openAwaited();
  }, [isDone]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const moves: Record<string, number> = { ArrowDown: index + 1, ArrowUp: index - 1 };
    const next = moves[event.key];
    if (event.key === "Escape") onLeave();
    else if (text === "" || event.altKey) return;
    else if (next !== undefined) setPosition({ text, index: Math.max(0, Math.min(next, count - 1)) });
    else if (event.key !== "Enter") return;
    else if (!isDone) awaitedText.current = text;
    else if (count > 0) open(index);
    event.preventDefault();
  };
  return { highlighted: index, onKeyDown };
}
