/** The health of a platform, for owners: whether it is connected, and which messages failed. */
import { formatDateTime } from "../../format/time";
import { words } from "../../words";
import type { PlatformHealth } from "../shared/calls";

const BUILT_IN_PLATFORMS = new Set(["web", "local", "api"]); // they need no connection

export function Health({ platform, health }: { platform: string; health: PlatformHealth | undefined }) {
  if (BUILT_IN_PLATFORMS.has(platform)) return null;
  const isConnected = health?.connected ?? false;
  return (
    <div className="health">
      <p className="health-state" data-connected={isConnected}>
        {isConnected ? words.platformConnected : words.platformNotConnected}
      </p>
      {!isConnected && <p>{health?.configured ? words.platformConfiguredHint : words.platformNotConnectedHint}</p>}
      {health !== undefined && health.pending > 0 && <p>{words.platformWaiting(health.pending)}</p>}
      {health?.last_error_at != null && <RecentProblems health={health} at={health.last_error_at} />}
    </div>
  );
}

function RecentProblems({ health, at }: { health: PlatformHealth; at: string }) {
  return (
    <div className="health-trouble">
      <b>{words.platformProblems}</b>
      {health.uncertain > 0 && <p>{words.platformUncertain(health.uncertain)}</p>}
      {health.failed > 0 && <p>{words.platformFailed(health.failed)}</p>}
      <p dir="auto">
        <time dateTime={at}>{formatDateTime(at)}</time> {health.last_error}
      </p>
    </div>
  );
}
