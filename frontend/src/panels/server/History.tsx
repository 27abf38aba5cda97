/** Who has changed which settings and when, with Undo. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { attempt } from "../../api/attempt";
import { formatDateTime, formatRecent } from "../../format/time";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { formatValue } from "../forms/settingValues";
import { HISTORY_KEY, listChanges, undoChange, useRefreshSettings, type SettingsChange } from "../forms/settingsApi";
import { LoadMoreButton } from "../shared/LoadMoreButton";

const MAX_VALUE_CHARS = 80;

export function History() {
  const query = useInfiniteQuery({
    queryKey: HISTORY_KEY,
    queryFn: ({ pageParam }) => listChanges(pageParam),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  const changes = query.data?.pages.flatMap((page) => page.changes);
  return (
    <section className="card" aria-labelledby="history-title">
      <h2 id="history-title" className="section-title">
        {setupWords.sections.history}
      </h2>
      <p className="hint">{setupWords.historyIntro}</p>
      {query.isError && <p role="alert">{words.panelLoadFailed}</p>}
      {changes?.length === 0 && <p className="panel-note">{setupWords.historyEmpty}</p>}
      <ul className="item-list" aria-label={setupWords.sections.history}>
        {changes?.map((change) => <ChangeRow key={change.number} change={change} />)}
      </ul>
      <LoadMoreButton query={query} />
    </section>
  );
}

function ChangeRow({ change }: { change: SettingsChange }) {
  const refresh = useRefreshSettings();
  const runOnce = useSingleFlight();
  const undo = async () => {
    if (!(await attempt(() => undoChange(change.number)))) return;
    toast(setupWords.undone);
    await refresh();
  };
  return (
    <li className="card-row change-row">
      <div className="card-row-text">
        <b dir="auto">
          {change.person_name ?? setupWords.noPerson}
          <time dateTime={change.changed_at} title={formatDateTime(change.changed_at)}>
            {formatRecent(change.changed_at)}
          </time>
        </b>
        <small>
          {[setupWords.origins[change.origin], change.undoes !== null && setupWords.undoOf(change.undoes)].filter(Boolean).join(" · ")}
        </small>
        {change.items.map((item) => (
          <small key={item.key} dir="auto">
            <code>{item.key}</code>: {describe(item.before)} → {describe(item.after)}
          </small>
        ))}
      </div>
      <button type="button" className="button" aria-label={setupWords.undoChange(change.number)} onClick={() => void runOnce(undo)}>
        {setupWords.undo}
      </button>
    </li>
  );
}

function describe(value: unknown): string {
  const text = formatValue(value).replaceAll("\n", ", ");
  if (text === "") return setupWords.valueDefault;
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
}
