/** What was used and what it cost: over time, and by model, platform, person and conversation. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useCenter, useMe } from "../../live/context";
import { words } from "../../words";
import * as calls from "../calls";
import type { Grouping, UsageReport } from "../calls";
import { Loaded } from "../parts/Loaded";
import { PanelPage } from "../parts/PanelPage";
import { Segmented } from "../../ui/Segmented";
import { nameOfDay } from "../parts/days";
import { Breakdown } from "./Breakdown";
import { Chart } from "./Chart";
import { Export } from "./Export";
import { isWhole, lastDays, periodsOf, type Asked, type Measure, type Span } from "./figures";
import { Totals } from "./Totals";
import "./usage.css";

const RANGES = ["7", "30", "90", "365"] as const;
type Range = (typeof RANGES)[number] | "other";
type Whose = "mine" | "all";

export default function UsagePanel() {
  const center = useCenter();
  const isOwner = useMe().person.role === "owner";
  const [whose, setWhose] = useState<Whose>(isOwner && center.everybodys.value ? "all" : "mine");
  const [range, setRange] = useState<Range>("30");
  const [now] = useState(Date.now);
  const [chosen, setChosen] = useState<Span>(() => lastDays(30, now));
  const span = useMemo(() => (range === "other" ? chosen : lastDays(Number(range), now)), [range, chosen, now]);
  const all = whose === "all";
  return (
    <PanelPage title={words.usage} actions={<Export span={span} all={all} isOwner={isOwner} />}>
      <div className="choosing">
        <Segmented
          label={words.usageRange}
          value={range}
          onChange={(value) => {
            setChosen(span);
            setRange(value);
          }}
          choices={[
            ...RANGES.map((days) => [days, days === "365" ? words.usageYear : words.usageDays(Number(days))] as const),
            ["other", words.usageOther],
          ]}
        />
        {isOwner && (
          <Segmented
            label={words.usageWhose}
            value={whose}
            onChange={setWhose}
            choices={[
              ["mine", words.usageMine],
              ["all", words.usageAll],
            ]}
          />
        )}
      </div>
      {range === "other" && <Dates span={chosen} onChange={setChosen} />}
      {isWhole(span) && <Report span={span} all={all} isOwner={isOwner} />}
      <p className="hint">{words.usageUtc}</p>
    </PanelPage>
  );
}

function Dates({ span, onChange }: { span: Span; onChange: (span: Span) => void }) {
  return (
    <div className="choosing dates">
      <label className="field">
        {words.usageFrom}
        <input type="date" value={span.first} max={span.last} onChange={(event) => onChange({ ...span, first: event.target.value })} />
      </label>
      <label className="field">
        {words.usageTo}
        <input type="date" value={span.last} min={span.first} onChange={(event) => onChange({ ...span, last: event.target.value })} />
      </label>
    </div>
  );
}

function useReport(by: Grouping, { first, last }: Span, all: boolean) {
  return useQuery({
    queryKey: ["usage", by, first, last, all],
    queryFn: () => calls.usage(by, first, last, all),
    placeholderData: keepPreviousData,
  });
}

function Report({ span, all, isOwner }: Asked) {
  const days = useReport("day", span, all);
  return (
    <Loaded query={days}>
      {(report) => (report.total.turns === 0 ? <Nothing /> : <Figures report={report} span={span} all={all} isOwner={isOwner} />)}
    </Loaded>
  );
}

function Nothing() {
  return (
    <div className="panel-empty">
      <h2>{words.usageNothing}</h2>
      <p>{words.usageNothingHint}</p>
    </div>
  );
}

function Figures({ report, span, all, isOwner }: Asked & { report: UsageReport }) {
  const [wanted, setMeasure] = useState<Measure | null>(null);
  const measure = wanted ?? (Number(report.total.cost_usd ?? 0) > 0 ? "cost" : "tokens");
  const names: Record<Measure, string> = { cost: words.usageCost, tokens: words.usageTokens, answers: words.usageAnswers };
  const periods = useMemo(() => periodsOf(span, report.rows), [span, report.rows]);
  const title = words.usageChart(names[measure], nameOfDay(span.first), nameOfDay(span.last));
  return (
    <>
      <Totals report={report} />
      <section className="card" aria-labelledby="over-time">
        <div className="card-head">
          <h2 id="over-time">{words.usageOverTime}</h2>
          <Segmented
            label={words.usageMeasure}
            value={measure}
            onChange={setMeasure}
            choices={(["cost", "tokens", "answers"] as const).map((each) => [each, names[each]] as const)}
          />
        </div>
        <Chart periods={periods} measure={measure} title={title} />
        <details className="as-table">
          <summary>{words.usageTable}</summary>
          <Breakdown by="day" rows={report.rows} measure={measure} />
        </details>
      </section>
      <Grouped span={span} all={all} isOwner={isOwner} measure={measure} />
    </>
  );
}

type Shown = Exclude<Grouping, "day">;

function Grouped({ span, all, isOwner, measure }: Asked & { measure: Measure }) {
  const [by, setBy] = useState<Shown>("model");
  const report = useReport(by, span, all);
  const names: [Shown, string][] = [
    ["model", words.usageModel],
    ["platform", words.usagePlatform],
    ...(isOwner ? [["person", words.usagePerson] satisfies [Shown, string]] : []),
    ["session", words.usageSession],
  ];
  return (
    <section className="card" aria-labelledby="grouped">
      <div className="card-head">
        <h2 id="grouped">{words.usageBy}</h2>
        <Segmented label={words.usageBy} value={by} onChange={setBy} choices={names} />
      </div>
      <Loaded query={report}>{({ rows }) => <Breakdown by={by} rows={rows} measure={measure} />}</Loaded>
    </section>
  );
}
