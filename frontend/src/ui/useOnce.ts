/** One thing at a time: who presses twice does it once. */
import { useCallback, useRef } from "react";

export function useOnce(): (act: () => unknown) => Promise<void> {
  const isBusy = useRef(false);
  return useCallback(async (act: () => unknown) => {
    if (isBusy.current) return;
    isBusy.current = true;
    try {
      await act();
    } finally {
      isBusy.current = false;
    }
  }, []);
}
