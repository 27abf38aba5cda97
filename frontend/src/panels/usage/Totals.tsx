/** The totals of a usage report. */
import { formatCount, formatDollars } from "../../format/numbers";
import { words } from "../../words";
import type { UsageReport } from "../shared/calls";

export function UsageTotals({ report: { total } }: { report: UsageReport }) {
  const cost = total.cost_usd;
  const pricedTurns = Math.max(1, total.turns - total.unpriced_turns);
  const perAnswer = cost !== null && Number(cost) > 0 ? formatDollars(String(Number(cost) / pricedTurns)) : null;
  return (
    <dl className="totals">
      <div>
        <dt>{words.usageCost}</dt>
        <dd>{cost === null ? "–" : formatDollars(cost)}</dd>
        {total.estimated_cost_usd !== null && <dd className="hint">{words.costByList(formatDollars(total.estimated_cost_usd))}</dd>}
        {total.unpriced_turns > 0 ? (
          <dd className="hint">{words.usageUnpriced(total.unpriced_turns)}</dd>
        ) : (
          perAnswer !== null && <dd className="hint">{words.usagePerAnswer(perAnswer)}</dd>
        )}
      </div>
      <div>
        <dt>{words.usageAnswers}</dt>
        <dd>{formatCount(total.turns)}</dd>
      </div>
      <div>
        <dt>{words.usageTokensIn}</dt>
        <dd>{formatCount(total.input_tokens)}</dd>
        {total.cache_read_tokens > 0 && <dd className="hint">{words.usageCached(formatCount(total.cache_read_tokens))}</dd>}
      </div>
      <div>
        <dt>{words.usageTokensOut}</dt>
        <dd>{formatCount(total.output_tokens)}</dd>
        {total.reasoning_tokens > 0 && <dd className="hint">{words.usageReasoning(formatCount(total.reasoning_tokens))}</dd>}
      </div>
    </dl>
  );
}
