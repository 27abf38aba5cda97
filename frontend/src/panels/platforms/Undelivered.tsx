/** The messages to chat platforms that failed or may not have arrived, to be settled many at once. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { getPlatformName } from "../../format/platforms";
import { formatDateTime, formatRecent } from "../../format/time";
import { confirm } from "../../ui/ConfirmDialog";
import { Link } from "../../ui/Link";
import { toast } from "../../ui/toasts";
import { words } from "../../words";
import * as calls from "../shared/calls";
import { LoadMoreButton } from "../shared/LoadMoreButton";
import { PLATFORM_ACCOUNTS_KEY } from "./ConnectionTest";

const UNDELIVERED_KEY = ["undelivered"];
const REFRESH_INTERVAL_MS = 5_000; // while the panel is open
const ACTIONS: readonly calls.Resolution[] = ["resend", "sent", "not_sent", "dismiss"];

/** An owner sees those of everybody. Nothing is shown where there are none. */
export function Undelivered({ isOwner }: { isOwner: boolean }) {
  const queryClient = useQueryClient();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [platform, setPlatform] = useState("");
  const [isBusy, setBusy] = useState(false);
  const query = useInfiniteQuery({
    queryKey: [...UNDELIVERED_KEY, isOwner],
    queryFn: ({ pageParam }) => calls.listUndelivered(isOwner, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: REFRESH_INTERVAL_MS,
  });
  const all = query.data?.pages.flatMap((page) => page.deliveries) ?? [];
  if (all.length === 0) return null;
  const platforms = [...new Set(all.map((each) => each.platform))].sort();
  const shown = all.filter((each) => !platforms.includes(platform) || each.platform === platform);
  const selected = shown.filter((each) => chosen.has(each.id));
  const toggle = (ids: readonly string[], isChosen: boolean) =>
    setChosen((before) => new Set(isChosen ? [...before, ...ids] : [...before].filter((id) => !ids.includes(id))));
  const resolve = async (action: calls.Resolution) => {
    const hasUncertain = selected.some((each) => each.state === "uncertain");
    const question = { title: words.undeliveredResendTitle(selected.length), text: words.undeliveredResendText, action: words.resend };
    if (action === "resend" && hasUncertain && !(await confirm(question))) return;
    setBusy(true);
    await attempt(async () => {
      const ids = selected.map((each) => each.id);
      const result = await calls.resolveUndelivered(ids, action, isOwner);
      if (result.unchanged.length > 0) toast(words.undeliveredUnchanged(result.unchanged.length));
      toggle(ids, false);
      await queryClient.invalidateQueries({ queryKey: UNDELIVERED_KEY });
      await queryClient.invalidateQueries({ queryKey: PLATFORM_ACCOUNTS_KEY });
    });
    setBusy(false);
  };
  const actions = ACTIONS.filter((each) => each === "resend" || each === "dismiss" || selected.every((one) => one.state === "uncertain"));
  return (
    <section className="card undelivered" aria-labelledby="undelivered-title">
      <h2 id="undelivered-title" className="section-title">
        {words.undelivered}
      </h2>
      <p>{words.undeliveredIntro}</p>
      <div className="undelivered-bar">
        <label className="option">
          <input
            type="checkbox"
            checked={selected.length === shown.length}
            onChange={(event) => toggle(shown.map((each) => each.id), event.target.checked)}
          />
          {words.undeliveredSelectAll}
        </label>
        {platforms.length > 1 && (
          <select value={platform} aria-label={words.undeliveredPlatform} onChange={(event) => setPlatform(event.target.value)}>
            <option value="">{words.undeliveredAllPlatforms}</option>
            {platforms.map((each) => (
              <option key={each} value={each}>
                {getPlatformName(each)}
              </option>
            ))}
          </select>
        )}
      </div>
      <ul>
        {shown.map((each) => (
          <li key={each.id}>
            <label className="option">
              <input type="checkbox" checked={chosen.has(each.id)} onChange={(event) => toggle([each.id], event.target.checked)} />
              <span>
                <b>{each.state === "uncertain" ? words.undeliveredUncertain : words.undeliveredFailed}</b>{" "}
                <span dir="auto">{each.target}</span>
                <small dir="auto">{each.error}</small>
              </span>
            </label>
            <span className="undelivered-place">
              {each.session_id !== null && (
                <Link to={each.session_id}>
                  <span dir="auto">{each.title ?? words.untitled}</span>
                </Link>
              )}
              <time dateTime={each.ended_at} title={formatDateTime(each.ended_at)}>
                {formatRecent(each.ended_at)}
              </time>
            </span>
          </li>
        ))}
      </ul>
      <LoadMoreButton query={query} />
      <div className="undelivered-bar" role="group" aria-label={words.undeliveredSelected(selected.length)}>
        <span role="status">{words.undeliveredSelected(selected.length)}</span>
        {actions.map((action) => (
          <button key={action} type="button" className="button" disabled={isBusy || selected.length === 0} onClick={() => void resolve(action)}>
            {action === "resend" ? words.resend : words.undeliveredActions[action]}
          </button>
        ))}
      </div>
    </section>
  );
}
