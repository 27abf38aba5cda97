/** The usage over time as columns. Screen readers get the same numbers from the table below. */
import { useState } from "react";
import { formatUtcDay } from "../../format/days";
import { words } from "../../words";
import { buildScale, getColumnParts, type Measure, type Period } from "./chartData";
import { formatAmount, formatPeriod } from "./labels";

const HEIGHT_PX = 180;
const TOP_MARGIN_PX = 10; // room for the number of the highest line
const LABELS_PX = 24; // height of the dates below
const MIN_COLUMN_PX = 1.5; // so that a small amount is still visible
const MAX_DATE_LABELS = 6;

interface Props {
  periods: readonly Period[];
  measure: Measure;
  title: string;
}

export function Chart({ periods, measure, title }: Props) {
  const [highlighted, setHighlighted] = useState<number | null>(null);
  const parts = periods.map((period) => getColumnParts(period, measure));
  const highest = Math.max(...parts.map(sum), 0);
  const scale = buildScale(highest, measure !== "cost");
  const top = scale.at(-1) ?? 0;
  const getHeight = (amount: number) => (top === 0 ? 0 : (amount / top) * (HEIGHT_PX - TOP_MARGIN_PX));
  const width = 100 / periods.length;
  const details = highlighted === null ? undefined : periods[highlighted];
  return (
    <figure className="chart">
      <figcaption aria-hidden="true">
        {details === undefined ? (
          <span>{title}</span>
        ) : (
          <>
            <span>{formatPeriod(details)}</span>
            <b>{formatAmount(details, measure)}</b>
          </>
        )}
        <span className="spacer" />
        {measure === "tokens" && <Legend />}
      </figcaption>
      <div className="chart-field" dir="ltr">
        <svg className="chart-scale" height={HEIGHT_PX + LABELS_PX} width="52" aria-hidden="true">
          {scale.map((amount) => (
            <text key={amount} x="44" y={HEIGHT_PX - getHeight(amount) + 4} textAnchor="end">
              {formatScaleValue(amount, measure)}
            </text>
          ))}
        </svg>
        <svg
          className="chart-columns"
          height={HEIGHT_PX + LABELS_PX}
          role="img"
          aria-label={title}
          onPointerLeave={() => setHighlighted(null)}
        >
          {scale.map((amount) => (
            <line key={amount} x1="0" x2="100%" y1={HEIGHT_PX - getHeight(amount)} y2={HEIGHT_PX - getHeight(amount)} />
          ))}
          {periods.map((period, index) => (
            <g key={period.first} data-highlighted={index === highlighted} onPointerEnter={() => setHighlighted(index)}>
              <rect className="chart-hit" x={`${index * width}%`} y="0" width={`${width}%`} height={HEIGHT_PX} />
              <Column parts={(parts[index] ?? []).map(getHeight)} left={(index + 0.14) * width} width={width * 0.72} />
            </g>
          ))}
          {chooseLabeledColumns(periods.length).map((index) => (
            <text key={index} x={`${(index + 0.5) * width}%`} y={HEIGHT_PX + 18} textAnchor="middle">
              {formatUtcDay(periods[index]?.first ?? "")}
            </text>
          ))}
        </svg>
      </div>
    </figure>
  );
}

function Column({ parts, left, width }: { parts: readonly number[]; left: number; width: number }) {
  return parts.map((height, index) => {
    const below = sum(parts.slice(0, index));
    const shown = height > 0 && height < MIN_COLUMN_PX ? MIN_COLUMN_PX : height;
    return (
      <rect
        key={index}
        className={index === 0 ? "chart-part" : "chart-part second"}
        x={`${left}%`}
        y={HEIGHT_PX - below - shown}
        width={`${width}%`}
        height={shown}
        rx={Math.min(2, shown / 2)}
      />
    );
  });
}

function Legend() {
  return (
    <span className="chart-legend">
      <svg width="10" height="10">
        <rect className="chart-part second" width="10" height="10" rx="2" />
      </svg>
      {words.usageTokensIn}
      <svg width="10" height="10">
        <rect className="chart-part" width="10" height="10" rx="2" />
      </svg>
      {words.usageTokensOut}
    </span>
  );
}

/** The indexes of the columns that have a date below them. */
function chooseLabeledColumns(count: number): number[] {
  const interval = Math.max(1, Math.ceil(count / MAX_DATE_LABELS));
  return Array.from({ length: Math.floor((count - 1) / interval) + 1 }, (_, index) => index * interval);
}

function formatScaleValue(amount: number, measure: Measure): string {
  return formatAmount({ cost: amount, input: amount, output: 0, answers: amount }, measure);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
