/** Where conversations take place, as far as there are any; for the owner also how each platform is doing. */
import { useQueries, useQuery } from "@tanstack/react-query";
import * as api from "../../api/calls";
import { Link } from "../../lib/Link";
import { short } from "../../lib/numbers";
import { useStore } from "../../lib/store";
import { ago } from "../../lib/time";
import { useCenter, useMe, useSessions } from "../../live/context";
import { nameOf, platformName } from "../../sidebar/naming";
import { PlatformBadge } from "../../ui/PlatformBadge";
import { words } from "../../words";
import * as calls from "../calls";
import { Loaded } from "../parts/Loaded";
import { PanelPage } from "../parts/PanelPage";
import { lastDays } from "../usage/figures";
import { Health } from "./Health";
import "./platforms.css";

const EVER = 3650; // days
const LATEST = 3;

export default function PlatformsPanel() {
  const center = useCenter();
  const all = useStore(center.everybodys, (value) => value);
  const isOwner = useMe().person.role === "owner";
  const health = useQuery({ queryKey: ["health"], queryFn: calls.platforms, enabled: isOwner, refetchInterval: 10_000 });
  const used = useQuery({ queryKey: ["platforms", all], queryFn: () => fetchUsed(all) });
  const sessions = useSessions();
  return (
    <PanelPage title={words.platformsPanel}>
      <p className="panel-intro">{words.platformsIntro}</p>
      <Loaded query={used}>
        {(answers) => {
          const seen = [...sessions.values()].map((session) => session.platform);
          const connected = (health.data?.platforms ?? []).map((each) => each.platform);
          const platforms = [...new Set([...answers.keys(), ...seen, ...connected])];
          return platforms.length === 0 ? (
            <div className="panel-empty">
              <h2>{words.platformNone}</h2>
            </div>
          ) : (
            <Platforms platforms={platforms} answers={answers} health={health.data?.platforms} all={all} />
          );
        }}
      </Loaded>
    </PanelPage>
  );
}

/** How many answers were given on each, the most first. */
async function fetchUsed(all: boolean): Promise<ReadonlyMap<string, number>> {
  const { first, last } = lastDays(EVER, Date.now());
  const { rows } = await calls.usage("platform", first, last, all);
  const known = rows.flatMap((row): [string, number][] => (row.group === null ? [] : [[row.group, row.turns]]));
  return new Map(known.sort(([, a], [, b]) => b - a));
}

interface Props {
  platforms: readonly string[];
  answers: ReadonlyMap<string, number>;
  health: readonly calls.PlatformHealth[] | undefined; // undefined: not to be told
  all: boolean;
}

function Platforms({ platforms, answers, health, all }: Props) {
  const latest = useQueries({
    queries: platforms.map((platform) => ({
      queryKey: ["latest", platform, all],
      queryFn: () => api.listSessions({ shelf: "current", platform, all }, null, LATEST),
    })),
  });
  return (
    <div className="platform-cards">
      {platforms.map((platform, place) => (
        <section key={platform} className="card" aria-label={platformName(platform)}>
          <div className="card-head">
            <h2>
              <PlatformBadge platform={platform} />
              {platformName(platform)}
            </h2>
            <small>{words.platformAnswers(answers.get(platform) ?? 0, short(answers.get(platform) ?? 0))}</small>
          </div>
          {health !== undefined && (
            <Health platform={platform} health={health.find((each) => each.platform === platform)} />
          )}
          <ul className="latest" aria-label={words.platformLatest}>
            {latest[place]?.data?.sessions.map((session) => (
              <li key={session.id}>
                <Link to={session.id}>
                  <span dir="auto">{nameOf(session)}</span>
                  <time dateTime={session.active_at ?? session.created_at}>{ago(session.active_at ?? session.created_at)}</time>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}
