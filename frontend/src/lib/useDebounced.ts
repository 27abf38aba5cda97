/** A text that changes only once the person has not typed for a moment, so that not every keystroke becomes a request. */
import { useEffect, useState } from "react";

const PAUSE_MS = 150;

export function useDebounced(text: string): string {
  const [debounced, setDebounced] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return debounced;
}
