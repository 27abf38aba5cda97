/** Says when the live connection is away; says nothing while it is there. */
import { useEffect, useState } from "react";
import { useStore } from "../lib/store";
import { useCenter } from "../live/context";
import type { Connection } from "../live/stream";
import { words } from "../words";

const PATIENCE = 1200; // milliseconds before a short cut is worth a word

const itself = (connection: Connection) => connection;

export function ConnectionSign() {
  const connection = useStore(useCenter().connection, itself);
  const isOnline = useIsOnline();
  const isAway = useLasting(connection !== "live", PATIENCE);
  const text = !isOnline ? words.offline : isAway ? words.reconnecting : "";
  return (
    <div className="connection" role="status" data-away={text !== ""}>
      {text}
    </div>
  );
}

/** True once something has been true for a while. */
function useLasting(holds: boolean, patience: number): boolean {
  const [lasts, setLasts] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLasts(holds), holds ? patience : 0);
    return () => clearTimeout(timer);
  }, [holds, patience]);
  return holds && lasts;
}

function useIsOnline(): boolean {
  const [isOnline, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const look = () => setOnline(navigator.onLine);
    window.addEventListener("online", look);
    window.addEventListener("offline", look);
    return () => {
      window.removeEventListener("online", look);
      window.removeEventListener("offline", look);
    };
  }, []);
  return isOnline;
}
