/** The server's log, as it is written; for owners. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useLayoutEffect, useRef, useState } from "react";
import { formatDateTime } from "../../format/time";
import { useDebounced } from "../../lib/useDebounced";
import { CopyButton } from "../../ui/CopyButton";
import { SearchField } from "../../ui/SearchField";
import { words } from "../../words";
import type { LogLevel, LogRecord } from "../shared/calls";
import * as calls from "../shared/calls";
import { PanelPage } from "../shared/PanelPage";
import { QueryResult } from "../shared/QueryResult";
import { addLogPage, formatRecord, type LogLines } from "./logLines";
import "./operation.css";

const POLL_INTERVAL_MS = 2_000;
const NEAR_END_PX = 40;
const LEVELS = ["debug", "info", "warning", "error"] as const satisfies LogLevel[];

export default function LogsPanel() {
  const queryClient = useQueryClient();
  const [level, setLevel] = useState<LogLevel>("info");
  const [text, setText] = useState("");
  const [isPaused, setPaused] = useState(false);
  const searched = useDebounced(text.trim());
  const queryKey = ["logs", level, searched];
  const query = useQuery({
    queryKey,
    queryFn: async () => {
      const lines = queryClient.getQueryData<LogLines>(queryKey);
      return addLogPage(lines, await calls.listLogs(level, searched, lines?.cursor ?? null));
    },
    refetchInterval: isPaused ? false : POLL_INTERVAL_MS,
  });
  return (
    <PanelPage title={words.logs}>
      <p className="panel-intro">{words.logsIntro}</p>
      <div className="log-controls">
        <SearchField text={text} label={words.logsSearch} onChange={setText} />
        <label className="log-level-field">
          {words.logsLevel}
          <select value={level} onChange={(event) => setLevel(LEVELS.find((each) => each === event.target.value) ?? "info")}>
            {LEVELS.map((each) => (
              <option key={each} value={each}>
                {words.logLevels[each]}
              </option>
            ))}
          </select>
        </label>
        <button type="button" className="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? words.logsResume : words.logsPause}
        </button>
      </div>
      <QueryResult query={query}>{(lines) => <LogView lines={lines} />}</QueryResult>
    </PanelPage>
  );
}

function LogView({ lines: { process, records } }: { lines: LogLines }) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [records]);
  return (
    <>
      <div className="log-head">
        <p className="hint">{words.logsProcess(process.host, process.pid, formatDateTime(process.started_at))}</p>
        <CopyButton text={records.map(formatRecord).join("\n")} label={words.logsCopy} />
      </div>
      <div
        ref={scroller}
        className="log-lines"
        role="log"
        aria-label={words.logs}
        aria-live="off"
        tabIndex={0}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
        }}
      >
        {records.length === 0 ? <p className="panel-note">{words.logsEmpty}</p> : records.map((record) => <LogLine key={record.no} record={record} />)}
      </div>
    </>
  );
}

function LogLine({ record: { at, level, logger, event, fields } }: { record: LogRecord }) {
  return (
    <div className="log-line" data-level={level}>
      <time dateTime={at}>{formatLogTime(at)}</time> <span className="log-level">{level}</span> <b>{event}</b>{" "}
      <span className="log-fields">
        {Object.entries(fields).map(([name, value]) => `${name}=${value}`).join(" ")}
      </span>{" "}
      <span className="log-logger">{logger}</span>
    </div>
  );
}

function formatLogTime(at: string): string {
  const date = new Date(at);
  const pad = (value: number) => String(value).padStart(2, "0");
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}
