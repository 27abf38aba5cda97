/** What was used in all. */
import { dollars, short } from "../../lib/numbers";
import { words } from "../../words";
import type { UsageReport } from "../calls";

export function Totals({ report: { total } }: { report: UsageReport }) {
  const cost = total.cost_usd;
  const priced = Math.max(1, total.turns - total.unpriced_turns);
  const perAnswer = cost !== null && Number(cost) > 0 ? dollars(String(Number(cost) / priced)) : null;
  return (
    <dl className="totals">
      <div>
        <dt>{words.usageCost}</dt>
        <dd>{cost === null ? "–" : dollars(cost)}</dd>
        {total.unpriced_turns > 0 ? (
          <dd className="hint">{words.usageUnpriced(total.unpriced_turns)}</dd>
        ) : (
          perAnswer !== null && <dd className="hint">{words.usagePerAnswer(perAnswer)}</dd>
        )}
      </div>
      <div>
        <dt>{words.usageAnswers}</dt>
        <dd>{short(total.turns)}</dd>
      </div>
      <div>
        <dt>{words.usageTokensIn}</dt>
        <dd>{short(total.input_tokens)}</dd>
        {total.cache_read_tokens > 0 && <dd className="hint">{words.usageCached(short(total.cache_read_tokens))}</dd>}
      </div>
      <div>
        <dt>{words.usageTokensOut}</dt>
        <dd>{short(total.output_tokens)}</dd>
        {total.reasoning_tokens > 0 && <dd className="hint">{words.usageReasoned(short(total.reasoning_tokens))}</dd>}
      </div>
    </dl>
  );
}
