/** Tests the connection of an account, or connects it now instead of after its pause, and says how it went. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { formatDuration } from "../../format/time";
import { words } from "../../words";
import * as calls from "../shared/calls";

type Accounts = Awaited<ReturnType<typeof calls.listPlatforms>>;

export const PLATFORM_ACCOUNTS_KEY = ["platform-accounts"];

export function ConnectionTest({ account }: { account: calls.PlatformAccount }) {
  const queryClient = useQueryClient();
  const [isTesting, setTesting] = useState(false);
  const [result, setResult] = useState<calls.PlatformAccount | null>(null);
  const isLive = account.state === "live";
  const run = async () => {
    setTesting(true);
    setResult(null);
    await attempt(async () => {
      const tested = await calls.testConnection(account.platform, account.account);
      setResult(tested);
      queryClient.setQueryData<Accounts>(
        PLATFORM_ACCOUNTS_KEY,
        (known) => known && { accounts: known.accounts.map((each) => (isSame(each, tested) ? tested : each)) },
      );
    });
    setTesting(false);
  };
  return (
    <div className="connection-test">
      <button type="button" className="button" disabled={isTesting} onClick={() => void run()}>
        {isLive ? words.testConnection : words.connectNow}
      </button>
      <span role="status" dir="auto" data-failed={Boolean(result?.last_test?.error)}>
        {isTesting ? words.testRunning : result !== null && describeResult(result)}
      </span>
    </div>
  );
}

const isSame = (one: calls.PlatformAccount, other: calls.PlatformAccount) =>
  one.platform === other.platform && one.account === other.account;

/** Says in words how a test went. The reason of an account that is not connected stands above it. */
export function describeResult({ state, name, error, last_test: test }: calls.PlatformAccount): string {
  if (test === null) return "";
  const took = formatDuration(test.seconds * 1000);
  if (test.error !== null)
    return state !== "live" && test.error === error ? words.testNotConnected(took) : words.testFailed(test.error, took);
  return state === "linking" ? words.accountStates.linking : words.testWorked(name, took);
}
