/** How full the context is, and what the conversation has used and cost, with a button that compacts it. */
import type { Session } from "../api/types";
import { formatCount, formatDollars, formatPercent } from "../format/numbers";
import { compactSession } from "../sessions/actions";
import { SparkIcon } from "../ui/icons";
import { Menu, MenuItem, MenuNote, MenuSeparator } from "../ui/Menu";
import { words } from "../words";
import { getContextFill, useModels, type ContextFill } from "./models";
import "../ui/meter.css";

interface Props {
  session: Session;
  canAct: boolean;
}

export function ContextMeter({ session, canAct }: Props) {
  const fill = getContextFill(session, useModels(session));
  const lines = describeUsage(session, fill);
  const { usage, context_tokens: tokens } = session;
  if (lines.length === 0) return null;
  const isFull = fill?.isNearlyFull ?? false;
  return (
    <Menu
      button={
        <button
          type="button"
          className="chip-button context-meter"
          data-full={isFull}
          title={lines.join(" · ")}
          aria-label={lines.join(" · ")}
        >
          {fill !== null && <MeterBar share={fill.share} />}
          <span>{fill !== null ? formatPercent(fill.share) : words.tokenCount(formatCount(tokens || usage.output_tokens))}</span>
          {usage.cost_usd !== null && Number(usage.cost_usd) > 0 && <span>{formatDollars(usage.cost_usd)}</span>}
        </button>
      }
    >
      <UsageLines lines={lines} />
      {canAct && (
        <>
          <MenuSeparator />
          <MenuNote isMuted>{words.compactionExplained}</MenuNote>
          <MenuItem icon={<SparkIcon />} onSelect={() => void compactSession(session.id)}>
            {words.compactContext}
          </MenuItem>
        </>
      )}
    </Menu>
  );
}

/** The same in the conversation's menu, for screens whose header is too narrow for the meter. */
export function MeterMenuLines({ session }: { session: Session }) {
  const lines = describeUsage(session, getContextFill(session, useModels(session)));
  if (lines.length === 0) return null;
  return (
    <div className="meter-menu-lines">
      <UsageLines lines={lines} />
      <MenuSeparator />
    </div>
  );
}

/** A warning above the composer when the context is nearly full. */
export function ContextWarning({ session }: { session: Session }) {
  const fill = getContextFill(session, useModels(session));
  if (fill === null || !fill.isNearlyFull || session.running) return null;
  return (
    <p className="composer-note" role="status">
      {words.contextNearlyFull(formatPercent(fill.share))}{" "}
      <button type="button" className="text-button" onClick={() => void compactSession(session.id)}>
        {words.compactNow}
      </button>
    </p>
  );
}

function UsageLines({ lines }: { lines: readonly string[] }) {
  return lines.map((line) => <MenuNote key={line}>{line}</MenuNote>);
}

/** The size and cost of a conversation, line by line; nothing before the first answer. */
function describeUsage({ usage, context_tokens: tokens, tool_call_count: calls }: Session, fill: ContextFill | null): string[] {
  if (tokens === 0 && usage.output_tokens === 0) return [];
  return [
    ...(fill !== null ? [describeFill(fill)] : tokens > 0 ? [words.contextTokens(formatCount(tokens))] : []),
    words.tokensInAndOut(formatCount(usage.input_tokens), formatCount(usage.output_tokens)),
    describeCost(usage),
    ...(calls > 0 ? [words.toolCalls(calls)] : []),
  ];
}

function MeterBar({ share }: { share: number }) {
  return (
    <span className="meter-bar">
      <i style={{ inlineSize: `${share * 100}%` }} />
    </span>
  );
}

function describeFill({ tokens, window, share }: ContextFill): string {
  return words.contextFill(formatPercent(share), formatCount(tokens), formatCount(window));
}

function describeCost({ cost_usd, cost_status, estimated_cost_usd, unpriced_turns }: Session["usage"]): string {
  if (cost_usd === null || cost_status === "unknown") return words.costUnknown;
  const isExact = cost_status === "actual" && unpriced_turns === 0;
  const cost = isExact ? words.cost(formatDollars(cost_usd)) : words.costEstimated(formatDollars(cost_usd));
  return estimated_cost_usd === null ? cost : `${cost} (${words.costByList(formatDollars(estimated_cost_usd))})`;
}
