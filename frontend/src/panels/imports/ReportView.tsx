/** What an import would bring in, or has brought in: numbers, and what the person should know. */
import { formatCount } from "../../format/numbers";
import type { Schemas } from "../../api/types";
import { words } from "../../words";

/** Whether an import brings in anything that is not there yet. */
export function hasNews({ counts }: Schemas["ReportJson"]): boolean {
  return ["conversations", "grown", "memories", "projects"].some((name) => (counts[name] ?? 0) > 0);
}

export function ReportView({ report }: { report: Schemas["ReportJson"] }) {
  const { counts, folded, notes, problems } = report;
  const shown = Object.entries(words.importCounts).filter(([name]) => (counts[name] ?? 0) > 0);
  return (
    <div className="import-report">
      {!hasNews(report) && <p>{(counts.unchanged ?? 0) > 0 ? words.importNothingNew : words.importNothingFound}</p>}
      <dl>
        {shown.map(([name, label]) => (
          <div key={name}>
            <dt>{label}</dt>
            <dd>{formatCount(counts[name] ?? 0)}</dd>
          </div>
        ))}
      </dl>
      <Notes title={words.importProblems(problems.count)} notes={problems} />
      <Notes title={words.importFolded(folded.count)} notes={folded} />
      <Notes title={words.importNotes(notes.count)} notes={notes} />
    </div>
  );
}

function Notes({ title, notes: { count, listed } }: { title: string; notes: { count: number; listed: string[] } }) {
  if (count === 0) return null;
  return (
    <details>
      <summary>{title}</summary>
      <ul>
        {listed.map((line, index) => (
          <li key={index} dir="auto">
            {line}
          </li>
        ))}
      </ul>
      {count > listed.length && <p>{words.importMore(count - listed.length)}</p>}
    </details>
  );
}
