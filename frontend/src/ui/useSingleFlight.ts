/** A function that ignores further calls while one is running, so that pressing a button twice acts once. */
import { useCallback, useRef } from "react";

export function useSingleFlight(): (act: () => unknown) => Promise<void> {
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
