/** Columns over time. The drawing is for the eye; the same figures stand in a table below. */
import { useState } from "react";
import { words } from "../../words";
import { nameOfDay } from "../parts/days";
import { partsOf, scaleFor, type Measure, type Period } from "./figures";
import { amountText, nameOfPeriod } from "./telling";

const HEIGHT = 180;
const TOP = 10; // so that the highest line has room for its number
const LABELS = 6; // dates below, at most

interface Props {
  periods: readonly Period[];
  measure: Measure;
  title: string;
}

export function Chart({ periods, measure, title }: Props) {
  const [pointed, setPointed] = useState<number | null>(null);
  const parts = periods.map((period) => partsOf(period, measure));
  const highest = Math.max(...parts.map(sum), 0);
  const scale = scaleFor(highest, measure !== "cost");
  const top = scale.at(-1) ?? 0;
  const heightOf = (amount: number) => (top === 0 ? 0 : (amount / top) * (HEIGHT - TOP));
  const width = 100 / periods.length;
  const told = pointed === null ? undefined : periods[pointed];
  return (
    <figure className="chart">
      <figcaption aria-hidden="true">
        {told === undefined ? (
          <span>{title}</span>
        ) : (
          <>
            <span>{nameOfPeriod(told)}</span>
            <b>{amountText(told, measure)}</b>
          </>
        )}
        <span className="grow" />
        {measure === "tokens" && <Legend />}
      </figcaption>
      <div className="chart-field" dir="ltr">
        <svg className="chart-scale" height={HEIGHT + 24} width="52" aria-hidden="true">
          {scale.map((amount) => (
            <text key={amount} x="44" y={HEIGHT - heightOf(amount) + 4} textAnchor="end">
              {scaleText(amount, measure)}
            </text>
          ))}
        </svg>
        <svg
          className="chart-columns"
          height={HEIGHT + 24}
          role="img"
          aria-label={title}
          onPointerLeave={() => setPointed(null)}
        >
          {scale.map((amount) => (
            <line key={amount} x1="0" x2="100%" y1={HEIGHT - heightOf(amount)} y2={HEIGHT - heightOf(amount)} />
          ))}
          {periods.map((period, place) => (
            <g key={period.first} data-pointed={place === pointed} onPointerEnter={() => setPointed(place)}>
              <rect className="chart-hit" x={`${place * width}%`} y="0" width={`${width}%`} height={HEIGHT} />
              <Column parts={(parts[place] ?? []).map(heightOf)} left={(place + 0.14) * width} width={width * 0.72} />
            </g>
          ))}
          {labelled(periods.length).map((place) => (
            <text key={place} x={`${(place + 0.5) * width}%`} y={HEIGHT + 18} textAnchor="middle">
              {nameOfDay(periods[place]?.first ?? "")}
            </text>
          ))}
        </svg>
      </div>
    </figure>
  );
}

function Column({ parts, left, width }: { parts: readonly number[]; left: number; width: number }) {
  return parts.map((height, place) => {
    const below = sum(parts.slice(0, place));
    const shown = height > 0 && height < 1.5 ? 1.5 : height; // a little is not nothing
    return (
      <rect
        key={place}
        className={place === 0 ? "chart-part" : "chart-part second"}
        x={`${left}%`}
        y={HEIGHT - below - shown}
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

/** The columns that have a date below them. */
function labelled(count: number): number[] {
  const every = Math.max(1, Math.ceil(count / LABELS));
  return Array.from({ length: Math.floor((count - 1) / every) + 1 }, (_, place) => place * every);
}

function scaleText(amount: number, measure: Measure): string {
  return amountText({ cost: amount, input: amount, output: 0, answers: amount }, measure);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
