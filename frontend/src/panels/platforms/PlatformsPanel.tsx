/** The panel of platforms that have conversations; for owners with the state of their accounts. */
import { useQueries, useQuery } from "@tanstack/react-query";
import * as sessionCalls from "../../api/calls";
import { getLastDays } from "../../format/days";
import { formatCount } from "../../format/numbers";
import { getPlatformName } from "../../format/platforms";
import { formatRecent } from "../../format/time";
import { useLocation } from "../../lib/router";
import { useStore } from "../../lib/store";
import { useLiveClient, useMe, useSessions } from "../../live/context";
import { getSessionName } from "../../sessions/names";
import { Link } from "../../ui/Link";
import { PlatformBadge } from "../../ui/PlatformBadge";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { getSettings, SETTINGS_KEY, type Settings } from "../forms/settingsApi";
import * as calls from "../shared/calls";
import { PanelPage } from "../shared/PanelPage";
import { QueryResult } from "../shared/QueryResult";
import { AccountStatuses } from "./AccountStatus";
import { PLATFORM_ACCOUNTS_KEY } from "./ConnectionTest";
import { PlatformSetup } from "./PlatformSetup";
import { Undelivered } from "./Undelivered";
import "../forms/forms.css";
import "./platforms.css";

const ALL_DAYS = 3650; // about ten years, the longest range that the server accepts
const MAX_LATEST_SESSIONS = 3;
const REFRESH_INTERVAL_MS = 5_000; // while the panel is open
const QUICK_INTERVAL_MS = 1_500; // while an owner waits for an account

export default function PlatformsPanel() {
  const client = useLiveClient();
  const showsAll = useStore(client.showsAll);
  const isOwner = useMe().person.role === "owner";
  const accounts = useQuery({
    queryKey: PLATFORM_ACCOUNTS_KEY,
    queryFn: calls.listPlatforms,
    enabled: isOwner,
    refetchInterval: ({ state }) => (state.data?.accounts.some(isWaiting) === true ? QUICK_INTERVAL_MS : REFRESH_INTERVAL_MS),
  });
  const answerCounts = useQuery({ queryKey: ["platforms", showsAll], queryFn: () => countAnswersByPlatform(showsAll) });
  const sessions = useSessions();
  const settings = useQuery({ queryKey: SETTINGS_KEY, queryFn: getSettings, enabled: isOwner });
  const { hash } = useLocation();
  const form = settings.data?.platforms.find(({ platform }) => platform === hash);
  if (settings.data !== undefined && form !== undefined) {
    const own = (accounts.data?.accounts ?? []).filter((each) => each.platform === form.platform);
    return (
      <PanelPage title={getPlatformName(form.platform)}>
        <PlatformSetup key={form.platform} form={form} settings={settings.data} accounts={own} />
      </PanelPage>
    );
  }
  return (
    <PanelPage title={words.platformsPanel}>
      <p className="panel-intro">{words.platformsIntro}</p>
      <Undelivered isOwner={isOwner} />
      {settings.data !== undefined && <ConnectList settings={settings.data} />}
      <QueryResult query={answerCounts}>
        {(answers) => {
          const known = [...sessions.values()].map((session) => session.platform);
          const configured = (accounts.data?.accounts ?? []).map((each) => each.platform);
          const platforms = [...new Set([...answers.keys(), ...known, ...configured])];
          return platforms.length === 0 ? (
            <div className="panel-empty">
              <h2>{isOwner ? setupWords.noPlatforms : words.platformsEmpty}</h2>
            </div>
          ) : (
            <Platforms platforms={platforms} answers={answers} accounts={accounts.data?.accounts} all={showsAll} />
          );
        }}
      </QueryResult>
    </PanelPage>
  );
}

/** The platforms that can be connected, each with a page of its own. */
function ConnectList({ settings }: { settings: Settings }) {
  return (
    <section className="card" aria-labelledby="connect-title">
      <h2 id="connect-title" className="section-title">
        {setupWords.connectPlatform}
      </h2>
      <div className="connect-list">
        {settings.platforms.map(({ platform }) => (
          <Link key={platform} to="platforms" section={platform} className="chip-button">
            <PlatformBadge platform={platform} />
            {getPlatformName(platform)}
          </Link>
        ))}
      </div>
    </section>
  );
}

const isWaiting = ({ state }: calls.PlatformAccount) => state === "linking" || state === "connecting";

/** Counts the answers on each platform, the highest count first. */
async function countAnswersByPlatform(all: boolean): Promise<ReadonlyMap<string, number>> {
  const { first, last } = getLastDays(ALL_DAYS, Date.now());
  const { rows } = await calls.getUsage("platform", first, last, all);
  const counts = rows.flatMap((row): [string, number][] => (row.group === null ? [] : [[row.group, row.turns]]));
  return new Map(counts.sort(([, a], [, b]) => b - a));
}

interface Props {
  platforms: readonly string[];
  answers: ReadonlyMap<string, number>;
  accounts: readonly calls.PlatformAccount[] | undefined; // undefined: not for this reader
  all: boolean;
}

function Platforms({ platforms, answers, accounts, all }: Props) {
  const latest = useQueries({
    queries: platforms.map((platform) => ({
      queryKey: ["latest", platform, all],
      queryFn: () => sessionCalls.listSessions({ state: "active", platform, all }, null, MAX_LATEST_SESSIONS),
    })),
  });
  return (
    <div className="platform-cards">
      {platforms.map((platform, index) => (
        <section key={platform} className="card" aria-label={getPlatformName(platform)}>
          <div className="card-head">
            <h2>
              <PlatformBadge platform={platform} />
              {getPlatformName(platform)}
            </h2>
            <small>{words.platformAnswers(answers.get(platform) ?? 0, formatCount(answers.get(platform) ?? 0))}</small>
          </div>
          {accounts !== undefined && (
            <AccountStatuses platform={platform} accounts={accounts.filter((each) => each.platform === platform)} />
          )}
          <ul className="latest-sessions" aria-label={words.platformLatest}>
            {latest[index]?.data?.sessions.map((session) => (
              <li key={session.id}>
                <Link to={session.id}>
                  <span dir="auto">{getSessionName(session)}</span>
                  <time dateTime={session.active_at ?? session.created_at}>{formatRecent(session.active_at ?? session.created_at)}</time>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}
