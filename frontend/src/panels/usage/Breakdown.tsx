/** What was used, by what it was used for: the most first. */
import { Link } from "../../lib/Link";
import { short } from "../../lib/numbers";
import { words } from "../../words";
import type { Grouping, Spent } from "../calls";
import { amountOf, type Measure } from "./figures";
import { costText, labelOf } from "./telling";

const MOST = 12; // rows of conversations; the export has all of them

interface Props {
  by: Grouping;
  rows: readonly Spent[];
  measure: Measure;
}

export function Breakdown({ by, rows, measure }: Props) {
  const sorted = by === "day" ? rows : [...rows].sort((a, b) => amountOf(b, measure) - amountOf(a, measure));
  const shown = by === "session" ? sorted.slice(0, MOST) : sorted;
  const highest = Math.max(...shown.map((row) => amountOf(row, measure)), 0);
  const names: Record<Grouping, string> = {
    day: words.usageDay,
    model: words.usageModel,
    platform: words.usagePlatform,
    person: words.usagePerson,
    session: words.usageSession,
  };
  return (
    <table className="breakdown">
      <thead>
        <tr>
          <th scope="col">{names[by]}</th>
          <th scope="col">{words.usageAnswers}</th>
          <th scope="col" className="wide-only">
            {words.usageTokensIn}
          </th>
          <th scope="col" className="wide-only">
            {words.usageTokensOut}
          </th>
          <th scope="col">{words.usageCost}</th>
        </tr>
      </thead>
      <tbody>
        {shown.map((row) => (
          <tr key={row.group ?? ""}>
            <th scope="row">
              <Name row={row} by={by} />
              {by !== "day" && <Bar share={highest === 0 ? 0 : amountOf(row, measure) / highest} />}
            </th>
            <td>{short(row.turns)}</td>
            <td className="wide-only">{short(row.input_tokens)}</td>
            <td className="wide-only">{short(row.output_tokens)}</td>
            <td>{costText(row)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Name({ row, by }: { row: Spent; by: Grouping }) {
  const label = labelOf(row, by);
  if (by === "session" && row.group !== null) {
    return (
      <Link to={row.group} dir="auto">
        {label}
      </Link>
    );
  }
  return <span dir="auto">{label}</span>;
}

function Bar({ share }: { share: number }) {
  return (
    <svg className="share" height="4" aria-hidden="true">
      <rect className="share-all" width="100%" height="4" rx="2" />
      <rect className="chart-part" width={`${share * 100}%`} height="4" rx="2" />
    </svg>
  );
}
