/** Deletes conversations that were not used for long, for owners: first shows what would be deleted, then asks, then does it. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { getPolicies } from "../../api/calls";
import { formatDate } from "../../format/days";
import { formatBytes } from "../../format/numbers";
import { getPlatformName } from "../../format/platforms";
import { confirm } from "../../ui/ConfirmDialog";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { setupWords } from "../../words/setup";
import { getRetention, pruneSessions, type PruneReport } from "../shared/calls";

const DEFAULT_DAYS = 365;
const MAX_DAYS = 36_500;

export function Prune() {
  const policy = useQuery({ queryKey: ["retention"], queryFn: getRetention }).data;
  const platforms = useQuery({ queryKey: ["policies"], queryFn: getPolicies }).data?.platforms ?? [];
  const [days, setDays] = useState<string | null>(null);
  const [platform, setPlatform] = useState("");
  const [report, setReport] = useState<PruneReport | null>(null);
  const [isBusy, setBusy] = useState(false);
  const runOnce = useSingleFlight();
  const shownDays = days ?? String(policy?.max_age_days ?? DEFAULT_DAYS);
  const run = async (dryRun: boolean) => {
    setBusy(true);
    await attempt(async () => {
      const body = { older_than_days: Number(shownDays), platform: platform === "" ? null : platform, dry_run: dryRun };
      let found = await pruneSessions(body);
      setReport(dryRun ? found : null);
      if (dryRun) return;
      let deleted = found.sessions;
      while (!found.is_complete) {
        found = await pruneSessions(body); // one request works for some seconds only
        deleted += found.sessions;
      }
      toast(setupWords.pruneDone(deleted));
    });
    setBusy(false);
  };
  const remove = async (sessions: number) => {
    const action = setupWords.pruneDelete(sessions);
    if (await confirm({ title: `${action}?`, text: setupWords.pruneText, action })) await run(false);
  };
  return (
    <section className="card" aria-labelledby="prune-title">
      <h2 id="prune-title" className="section-title">
        {setupWords.prune}
      </h2>
      <p>{setupWords.pruneIntro}</p>
      <p className="hint">{setupWords.prunePolicyHint}</p>
      <form
        className="add-entry"
        onSubmit={(event) => {
          event.preventDefault();
          void runOnce(() => run(true));
        }}
      >
        <label className="field">
          {setupWords.pruneDays}
          <input
            type="number"
            required
            min={1}
            max={MAX_DAYS}
            value={shownDays}
            onChange={(event) => {
              setDays(event.target.value);
              setReport(null);
            }}
          />
        </label>
        <label className="field">
          {setupWords.prunePlatform}
          <select
            value={platform}
            onChange={(event) => {
              setPlatform(event.target.value);
              setReport(null);
            }}
          >
            <option value="">{setupWords.pruneEverywhere}</option>
            {platforms.flatMap((each) => (each.platform === null ? [] : [each.platform])).map((name) => (
              <option key={name} value={name}>
                {getPlatformName(name)}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" className="button" disabled={isBusy}>
          {setupWords.prunePreview}
        </button>
      </form>
      <div role="status" className="prune-report">
        {isBusy && <p>{setupWords.pruneRunning}</p>}
        {report !== null && <p>{describeReport(report)}</p>}
      </div>
      {report !== null && report.sessions > 0 && (
        <button type="button" className="button danger" disabled={isBusy} onClick={() => void runOnce(() => remove(report.sessions))}>
          {setupWords.pruneDelete(report.sessions)}
        </button>
      )}
    </section>
  );
}

function describeReport({ sessions, messages, bytes, oldest, newest, is_complete }: PruneReport): string {
  if (sessions === 0) return setupWords.pruneNothing;
  const span = oldest === null || newest === null ? "" : setupWords.pruneSpan(formatDate(oldest), formatDate(newest));
  const more = is_complete ? "" : setupWords.pruneMore;
  return [setupWords.pruneFound(sessions, messages, formatBytes(bytes)), span, more].filter((text) => text !== "").join(" ");
}
