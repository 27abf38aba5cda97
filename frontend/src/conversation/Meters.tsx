/** How full the context is, and what the conversation has used and cost; with a summary on offer. */
import type { Session } from "../api/types";
import { dollars, percent, short } from "../lib/numbers";
import { SparkIcon } from "../ui/icons";
import { Menu, MenuItem, MenuLine, MenuNote } from "../ui/Menu";
import { words } from "../words";
import { compress } from "./actions";
import { fillOf, NEARLY_FULL, useModels, type Fill } from "./models";

interface Props {
  session: Session;
  mayAct: boolean;
}

export function Meters({ session, mayAct }: Props) {
  const fill = fillOf(session, useModels(session));
  const lines = linesOf(session, fill);
  const { usage, context_tokens: tokens } = session;
  if (lines.length === 0) return null;
  const isFull = fill !== null && fill.share >= NEARLY_FULL;
  return (
    <Menu
      button={
        <button type="button" className="chip-button meters" data-full={isFull} title={lines.join(" · ")} aria-label={lines.join(" · ")}>
          {fill !== null && <Bar share={fill.share} />}
          <span>{fill !== null ? percent(fill.share) : words.contextShort(short(tokens || usage.output_tokens))}</span>
          {usage.cost_usd !== null && Number(usage.cost_usd) > 0 && <span>{dollars(usage.cost_usd)}</span>}
        </button>
      }
    >
      <Lines lines={lines} />
      {mayAct && (
        <>
          <MenuLine />
          <MenuNote quiet>{words.summaryExplained}</MenuNote>
          <MenuItem icon={<SparkIcon />} onSelect={() => void compress(session.id)}>
            {words.compress}
          </MenuItem>
        </>
      )}
    </Menu>
  );
}

/** The same in the menu of a conversation, for screens whose head has no room for it. */
export function MeterLines({ session }: { session: Session }) {
  const lines = linesOf(session, fillOf(session, useModels(session)));
  if (lines.length === 0) return null;
  return (
    <div className="meter-lines">
      <Lines lines={lines} />
      <MenuLine />
    </div>
  );
}

/** Said before the next message, once the context is nearly full. */
export function NearlyFull({ session }: { session: Session }) {
  const fill = fillOf(session, useModels(session));
  if (fill === null || fill.share < NEARLY_FULL || session.running) return null;
  return (
    <p className="where" role="status">
      {words.nearlyFull(percent(fill.share))}{" "}
      <button type="button" className="text-button" onClick={() => void compress(session.id)}>
        {words.compressNow}
      </button>
    </p>
  );
}

function Lines({ lines }: { lines: readonly string[] }) {
  return lines.map((line) => <MenuNote key={line}>{line}</MenuNote>);
}

/** What is known of a conversation's size and cost, line by line; nothing as long as nobody has answered in it. */
function linesOf({ usage, context_tokens: tokens }: Session, fill: Fill | null): string[] {
  if (tokens === 0 && usage.output_tokens === 0) return [];
  return [
    ...(fill !== null ? [fillText(fill)] : tokens > 0 ? [words.contextTokens(short(tokens))] : []),
    words.usageDetail(short(usage.input_tokens), short(usage.output_tokens)),
    costText(usage),
  ];
}

function Bar({ share }: { share: number }) {
  return (
    <span className="fill">
      <i style={{ inlineSize: `${share * 100}%` }} />
    </span>
  );
}

function fillText({ tokens, window, share }: Fill): string {
  return words.contextFill(percent(share), short(tokens), short(window));
}

function costText({ cost_usd, cost_status, unpriced_turns }: Session["usage"]): string {
  if (cost_usd === null || cost_status === "unknown") return words.costUnknown;
  const isExact = cost_status === "actual" && unpriced_turns === 0;
  return isExact ? words.cost(dollars(cost_usd)) : words.costEstimated(dollars(cost_usd));
}
