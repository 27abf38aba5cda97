/** Lets the browser ask before the tab is closed or reloaded while it has a temporary conversation, which would be gone. */
import { useEffect } from "react";
import { useStore } from "../lib/store";
import { temporaryChat } from "../temporary/temporaryChat";

export function useLeaveWarning(): void {
  const hasMessages = useStore(temporaryChat.state, (state) => state.messages.length > 0);
  useEffect(() => {
    if (!hasMessages) return;
    const ask = (event: BeforeUnloadEvent) => {
      if (temporaryChat.state.value.messages.length > 0) event.preventDefault();
    };
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [hasMessages]);
}
