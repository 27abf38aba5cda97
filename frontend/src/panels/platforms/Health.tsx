/** How a platform is doing, for the owner: whether it is connected, and what does not arrive. */
import { moment } from "../../lib/time";
import { words } from "../../words";
import type { PlatformHealth } from "../calls";

const ALWAYS_THERE = new Set(["web", "local", "api"]); // ways in that need no connection

export function Health({ platform, health }: { platform: string; health: PlatformHealth | undefined }) {
  if (ALWAYS_THERE.has(platform)) return null;
  const isConnected = health?.connected ?? false;
  return (
    <div className="health">
      <p className="health-state" data-connected={isConnected}>
        {isConnected ? words.platformConnected : words.platformNotConnected}
      </p>
      {!isConnected && <p>{words.platformNotConnectedHint}</p>}
      {health !== undefined && health.waiting > 0 && <p>{words.platformWaiting(health.waiting)}</p>}
      {health?.trouble_at != null && <Trouble health={health} at={health.trouble_at} />}
    </div>
  );
}

function Trouble({ health, at }: { health: PlatformHealth; at: string }) {
  return (
    <div className="health-trouble">
      <b>{words.platformTrouble}</b>
      {health.uncertain > 0 && <p>{words.platformUncertain(health.uncertain)}</p>}
      {health.failed > 0 && <p>{words.platformFailed(health.failed)}</p>}
      <p dir="auto">
        <time dateTime={at}>{moment(at)}</time> {health.trouble}
      </p>
    </div>
  );
}
