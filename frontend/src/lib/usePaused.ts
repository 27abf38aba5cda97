/** A text, a moment after it was last changed: so that not every keystroke asks the server. */
import { useEffect, useState } from "react";

const PAUSE = 150; // milliseconds without a keystroke

export function usePaused(text: string): string {
  const [paused, setPaused] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return paused;
}
