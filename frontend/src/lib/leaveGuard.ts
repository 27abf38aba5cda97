/** Asks before a person leaves a page with unsaved changes: within the page, by going back, or by closing the tab. */
import { useEffect } from "react";

let guard: { hasChanges: () => boolean; question: string } | null = null;

/** Whether the page may be left now; asks if there are unsaved changes. */
export function mayLeave(): boolean {
  return guard === null || !guard.hasChanges() || window.confirm(guard.question);
}

export function useLeaveGuard(hasChanges: boolean, question: string): void {
  useEffect(() => {
    if (!hasChanges) return;
    const own = { hasChanges: () => true, question };
    guard = own;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => {
      if (guard === own) guard = null;
      window.removeEventListener("beforeunload", ask);
    };
  }, [hasChanges, question]);
}
