/** Who has changed which settings and when, with Undo. */
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/types";
import { formatDateTime, formatRecent } from "../../format/time";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { formatValue, splitKey } from "../forms/settingValues";
import { HISTORY_KEY, listChanges, undoChange, useSettingsAction } from "../forms/settingsApi";
import { LoadMoreButton } from "../shared/LoadMoreButton";
import { nameChoice } from "../forms/settingNames";

const MAX_VALUE_CHARS = 80;

export function History({ version }: { version: number }) {
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
        {changes?.map((change) => <ChangeRow key={change.number} change={change} version={version} />)}
      </ul>
      <LoadMoreButton query={query} />
    </section>
  );
}

function ChangeRow({ change, version }: { change: Schemas["SettingsChangeJson"]; version: number }) {
  const run = useSettingsAction();
  const runOnce = useSingleFlight();
  const undo = async () => {
    if (await run(() => undoChange(change.number, version))) toast(setupWords.undone);
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
            <code>{item.key}</code>: {describe(item.key, item.before, item.is_secret)} → {describe(item.key, item.after, item.is_secret)}
          </small>
        ))}
      </div>
      <button type="button" className="button" aria-label={setupWords.undoChange(change.number)} onClick={() => void runOnce(undo)}>
        {setupWords.undo}
      </button>
    </li>
  );
}

function describe(key: string, value: unknown, isSecret: boolean): string {
  if (typeof value === "boolean") return value ? words.switchOn : words.switchOff;
  const raw = formatValue(value).replaceAll("\n", ", ");
  if (raw === "") return isSecret || key.startsWith("providers.") ? setupWords.valueNotSet : setupWords.valueDefault;
  const text = isSecret ? raw : nameChoice(splitKey(key).at(-1) ?? "", raw);
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
}
