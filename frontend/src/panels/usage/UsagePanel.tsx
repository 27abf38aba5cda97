/** The panel of usage and cost: over time, and by model, platform, person and conversation. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { formatUtcDay, getLastDays, type DayRange } from "../../format/days";
import { useLiveClient, useMe } from "../../live/context";
import { SegmentedControl } from "../../ui/SegmentedControl";
import { words } from "../../words";
import type { Grouping, UsageReport } from "../shared/calls";
import * as calls from "../shared/calls";
import { PanelPage } from "../shared/PanelPage";
import { QueryResult } from "../shared/QueryResult";
import { Breakdown } from "./Breakdown";
import { Chart } from "./Chart";
import { buildPeriods, isValidRange, type Measure, type ReportQuery } from "./chartData";
import { UsageExport } from "./Export";
import { UsageTotals } from "./Totals";
import "./usage.css";

const PRESETS_DAYS = ["7", "30", "90", "365"] as const;
type RangePreset = (typeof PRESETS_DAYS)[number] | "other";
type UsageScope = "mine" | "all";

export default function UsagePanel() {
  const client = useLiveClient();
  const isOwner = useMe().person.role === "owner";
  const [scope, setScope] = useState<UsageScope>(isOwner && client.showsAll.value ? "all" : "mine");
  const [preset, setPreset] = useState<RangePreset>("30");
  const [now] = useState(Date.now);
  const [customRange, setCustomRange] = useState<DayRange>(() => getLastDays(30, now));
  const range = useMemo(() => (preset === "other" ? customRange : getLastDays(Number(preset), now)), [preset, customRange, now]);
  const all = scope === "all";
  return (
    <PanelPage title={words.usage} actions={<UsageExport range={range} all={all} isOwner={isOwner} />}>
      <div className="filters">
        <SegmentedControl
          label={words.usageRange}
          value={preset}
          onChange={(value) => {
            setCustomRange(range);
            setPreset(value);
          }}
          choices={[
            ...PRESETS_DAYS.map((days) => [days, days === "365" ? words.usageYear : words.usageDays(Number(days))] as const),
            ["other", words.usageCustomRange],
          ]}
        />
        {isOwner && (
          <SegmentedControl
            label={words.usageScope}
            value={scope}
            onChange={setScope}
            choices={[
              ["mine", words.usageScopeMine],
              ["all", words.usageScopeAll],
            ]}
          />
        )}
      </div>
      {preset === "other" && <DateFields range={customRange} onChange={setCustomRange} />}
      {isValidRange(range) && <DailyReport range={range} all={all} isOwner={isOwner} />}
      <p className="hint">{words.usageUtc}</p>
    </PanelPage>
  );
}

function DateFields({ range, onChange }: { range: DayRange; onChange: (range: DayRange) => void }) {
  return (
    <div className="filters dates">
      <label className="field">
        {words.usageFrom}
        <input type="date" value={range.first} max={range.last} onChange={(event) => onChange({ ...range, first: event.target.value })} />
      </label>
      <label className="field">
        {words.usageTo}
        <input type="date" value={range.last} min={range.first} onChange={(event) => onChange({ ...range, last: event.target.value })} />
      </label>
    </div>
  );
}

function useReport(by: Grouping, { first, last }: DayRange, all: boolean) {
  return useQuery({
    queryKey: ["usage", by, first, last, all],
    queryFn: () => calls.getUsage(by, first, last, all),
    placeholderData: keepPreviousData,
  });
}

function DailyReport({ range, all, isOwner }: ReportQuery) {
  const days = useReport("day", range, all);
  return (
    <QueryResult query={days}>
      {(report) => (report.total.turns === 0 ? <EmptyReport /> : <ReportView report={report} range={range} all={all} isOwner={isOwner} />)}
    </QueryResult>
  );
}

function EmptyReport() {
  return (
    <div className="panel-empty">
      <h2>{words.usageEmpty}</h2>
      <p>{words.usageEmptyHint}</p>
    </div>
  );
}

function ReportView({ report, range, all, isOwner }: ReportQuery & { report: UsageReport }) {
  const [chosenMeasure, setMeasure] = useState<Measure | null>(null);
  const measure = chosenMeasure ?? (Number(report.total.cost_usd ?? 0) > 0 ? "cost" : "tokens");
  const names: Record<Measure, string> = { cost: words.usageCost, tokens: words.usageTokens, answers: words.usageAnswers };
  const periods = useMemo(() => buildPeriods(range, report.rows), [range, report.rows]);
  const title = words.usageChart(names[measure], formatUtcDay(range.first), formatUtcDay(range.last));
  return (
    <>
      <UsageTotals report={report} />
      <section className="card" aria-labelledby="over-time">
        <div className="card-head">
          <h2 id="over-time">{words.usageOverTime}</h2>
          <SegmentedControl
            label={words.usageMeasure}
            value={measure}
            onChange={setMeasure}
            choices={(["cost", "tokens", "answers"] as const).map((each) => [each, names[each]] as const)}
          />
        </div>
        <Chart periods={periods} measure={measure} title={title} />
        <details className="disclosure">
          <summary>{words.usageShowTable}</summary>
          <Breakdown by="day" rows={report.rows} measure={measure} />
        </details>
      </section>
      <GroupedReport range={range} all={all} isOwner={isOwner} measure={measure} />
    </>
  );
}

type BreakdownGrouping = Exclude<Grouping, "day">;

function GroupedReport({ range, all, isOwner, measure }: ReportQuery & { measure: Measure }) {
  const [by, setBy] = useState<BreakdownGrouping>("model");
  const report = useReport(by, range, all);
  const names: [BreakdownGrouping, string][] = [
    ["model", words.usageModel],
    ["platform", words.usagePlatform],
    ...(isOwner ? [["person", words.usagePerson] satisfies [BreakdownGrouping, string]] : []),
    ["session", words.usageSession],
  ];
  return (
    <section className="card" aria-labelledby="grouped">
      <div className="card-head">
        <h2 id="grouped">{words.usageBreakdown}</h2>
        <SegmentedControl label={words.usageBreakdown} value={by} onChange={setBy} choices={names} />
      </div>
      <QueryResult query={report}>{({ rows }) => <Breakdown by={by} rows={rows} measure={measure} />}</QueryResult>
    </section>
  );
}
