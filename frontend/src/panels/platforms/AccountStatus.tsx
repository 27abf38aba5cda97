/** How the accounts on a platform are doing, for owners: connected or not and why, the last message, what waits. */
import { getPlatformName } from "../../format/platforms";
import { formatDateTime, formatRecent } from "../../format/time";
import { words } from "../../words";
import type { PlatformAccount } from "../shared/calls";
import { ConnectionTest } from "./ConnectionTest";
import { LinkingPrompt } from "./LinkingPrompt";

const BUILT_IN_PLATFORMS = new Set(["web", "local", "api"]); // they need no connection
const TESTABLE_STATES = new Set(["connecting", "live", "deaf", "refused"]); // a process runs it, and it does not wait to be linked

interface Props {
  platform: string;
  accounts: readonly PlatformAccount[];
  isStarting?: boolean; // it was saved a moment ago, and a server takes it over now
}

export function AccountStatuses({ platform, accounts, isStarting = false }: Props) {
  if (BUILT_IN_PLATFORMS.has(platform)) return null;
  if (accounts.length === 0)
    return (
      <div className="account-status">
        <p className="account-state" data-state="off">
          {words.accountStates.off}
        </p>
        <p>{words.platformNotConnectedHint}</p>
      </div>
    );
  const shown = accounts.map((each) => (isStarting && each.state === "off" && each.configured ? { ...each, state: "connecting" as const, error: null } : each));
  return shown.map((account) => <AccountStatus key={account.account} account={account} />);
}

function AccountStatus({ account }: { account: PlatformAccount }) {
  const isLive = account.state === "live";
  const hasProblem = !isLive && account.state !== "linking";
  const names = [account.account, account.name].filter(Boolean).join(" · ");
  return (
    <div className="account-status">
      <p className="account-state" data-state={account.state}>
        {names !== "" && <b dir="auto">{names}</b>}
        {isLive && account.since !== null ? <Moment label={words.accountSince} at={account.since} /> : <span>{words.accountStates[account.state]}</span>}
      </p>
      {account.linking !== null && <LinkingPrompt linking={account.linking} platform={getPlatformName(account.platform)} />}
      {account.state === "off" && <p>{account.configured ? words.platformConfiguredHint : words.platformNotConnectedHint}</p>}
      {hasProblem && account.error !== null && <Problem text={account.error} at={account.error_at} />}
      {account.warnings.map((warning) => (
        <p key={warning} className="account-warning" dir="auto">
          {warning}
        </p>
      ))}
      {account.details.map((detail) => (
        <p key={detail} dir="auto">
          {detail}
        </p>
      ))}
      {account.last_message_at !== null && <Moment label={words.accountLastMessage} at={account.last_message_at} />}
      {account.home_channel !== null && (
        <p dir="auto">{words.accountHome(account.home_channel.name || account.home_channel.target)}</p>
      )}
      {!hasProblem && account.error !== null && account.error_at !== null && (
        <p dir="auto">
          <Moment label={words.accountLastError} at={account.error_at} /> {account.error}
        </p>
      )}
      {account.waiting > 0 && <p>{words.platformWaiting(account.waiting)}</p>}
      {account.delivery_error_at !== null && <FailedDeliveries account={account} at={account.delivery_error_at} />}
      {TESTABLE_STATES.has(account.state) && <ConnectionTest account={account} />}
    </div>
  );
}

function Moment({ label, at }: { label: (when: string) => string; at: string }) {
  return (
    <time dateTime={at} title={formatDateTime(at)}>
      {label(formatRecent(at))}
    </time>
  );
}

function Problem({ text, at }: { text: string; at: string | null }) {
  return (
    <div className="account-problem" dir="auto">
      {at !== null && <Moment label={words.accountLastError} at={at} />} {text}
    </div>
  );
}

function FailedDeliveries({ account, at }: { account: PlatformAccount; at: string }) {
  return (
    <div className="account-problem">
      <b>{words.platformProblems}</b>
      {account.uncertain > 0 && <p>{words.platformUncertain(account.uncertain)}</p>}
      {account.failed > 0 && <p>{words.platformFailed(account.failed)}</p>}
      {account.delivery_error !== null && (
        <p dir="auto">
          <Moment label={words.accountLastError} at={at} /> {account.delivery_error}
        </p>
      )}
    </div>
  );
}
