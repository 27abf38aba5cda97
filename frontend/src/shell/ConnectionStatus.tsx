/** Shows when the connection to the server is lost, and nothing while it works. */
import { useEffect, useState } from "react";
import { useStore } from "../lib/store";
import { useLiveClient } from "../live/context";
import { words } from "../words";

const NOTICE_DELAY_MS = 1200; // a shorter interruption is not shown

export function ConnectionStatus() {
  const connection = useStore(useLiveClient().connection);
  const isOnline = useIsOnline();
  const isDisconnected = useDelayedTrue(connection !== "live", NOTICE_DELAY_MS);
  const text = !isOnline ? words.offline : isDisconnected ? words.reconnecting : "";
  return (
    <div className="connection" role="status" data-visible={text !== ""}>
      {text}
    </div>
  );
}

/** Returns true once `value` has been true for the delay. */
function useDelayedTrue(value: boolean, delayMs: number): boolean {
  const [isDelayed, setDelayed] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), value ? delayMs : 0);
    return () => clearTimeout(timer);
  }, [value, delayMs]);
  return value && isDelayed;
}

function useIsOnline(): boolean {
  const [isOnline, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const update = () => setOnline(navigator.onLine);
    window.addEventListener("online", update);
    window.addEventListener("offline", update);
    return () => {
      window.removeEventListener("online", update);
      window.removeEventListener("offline", update);
    };
  }, []);
  return isOnline;
}
