/** The usage by day, model, platform, person or conversation, in a table. */
import { formatCount } from "../../format/numbers";
import { Link } from "../../ui/Link";
import { words } from "../../words";
import type { Grouping, UsageRow } from "../shared/calls";
import { getAmount, type Measure } from "./chartData";
import { formatCost, getRowLabel } from "./labels";

const MAX_SESSION_ROWS = 12; // the export has all of them

interface Props {
  by: Grouping;
  rows: readonly UsageRow[];
  measure: Measure;
}

export function Breakdown({ by, rows, measure }: Props) {
  const sorted = by === "day" ? rows : [...rows].sort((a, b) => getAmount(b, measure) - getAmount(a, measure));
  const shown = by === "session" ? sorted.slice(0, MAX_SESSION_ROWS) : sorted;
  const highest = Math.max(...shown.map((row) => getAmount(row, measure)), 0);
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
              <RowName row={row} by={by} />
              {by !== "day" && <ShareBar share={highest === 0 ? 0 : getAmount(row, measure) / highest} />}
            </th>
            <td>{formatCount(row.turns)}</td>
            <td className="wide-only">{formatCount(row.input_tokens)}</td>
            <td className="wide-only">{formatCount(row.output_tokens)}</td>
            <td>{formatCost(row)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function RowName({ row, by }: { row: UsageRow; by: Grouping }) {
  const label = getRowLabel(row, by);
  if (by === "session" && row.group !== null) {
    return (
      <Link to={row.group} dir="auto">
        {label}
      </Link>
    );
  }
  return <span dir="auto">{label}</span>;
}

function ShareBar({ share }: { share: number }) {
  return (
    <svg className="share-bar" height="4" aria-hidden="true">
      <rect className="share-bar-track" width="100%" height="4" rx="2" />
      <rect className="chart-part" width={`${share * 100}%`} height="4" rx="2" />
    </svg>
  );
}
