/** How full the context is, and what the conversation has cost. */
import type { Session } from "../api/types";
import { dollars, short } from "../lib/numbers";
import { words } from "../words";

export function Meters({ session }: { session: Session }) {
  const { usage, context_tokens: tokens } = session;
  if (tokens === 0 && usage.output_tokens === 0) return null;
  const detail = [
    words.contextTokens(short(tokens)),
    words.usageDetail(short(usage.input_tokens), short(usage.output_tokens)),
    costText(usage),
  ].join(" · ");
  return (
    <span className="meters" title={detail} aria-label={detail} role="img">
      <span>{words.contextShort(short(tokens))}</span>
      {usage.cost_usd !== null && Number(usage.cost_usd) > 0 && <span>{dollars(usage.cost_usd)}</span>}
    </span>
  );
}

function costText({ cost_usd, cost_status, unpriced_turns }: Session["usage"]): string {
  if (cost_usd === null || cost_status === "unknown") return words.costUnknown;
  const isExact = cost_status === "actual" && unpriced_turns === 0;
  return isExact ? words.cost(dollars(cost_usd)) : words.costEstimated(dollars(cost_usd));
}
