/** A tool call of the agent: its arguments, its result and its state. */
import { useEffect, useState } from "react";
import { formatDuration } from "../format/time";
import { searchJump } from "../layout/searchJump";
import { useStore } from "../lib/store";
import { CheckIcon, ChevronIcon, ToolIcon, WarningIcon } from "../ui/icons";
import { watchScroller } from "../ui/scrollFocus";
import { words } from "../words";
import type { ToolPart } from "./rows";
import "./ToolCard.css";

const MAX_PREVIEW_CHARS = 2000; // of a result, before it is expanded
const MAX_SUMMARY_CHARS = 80;

export function ToolCard({ tool, isRunning }: { tool: ToolPart; isRunning: boolean }) {
  const state = tool.failed ? "failed" : tool.result !== null ? "done" : isRunning ? "running" : "unknown";
  const names = { failed: words.toolFailed, done: words.toolDone, running: words.toolRunning, unknown: "" };
  return (
    <details className="tool" data-state={state}>
      <summary>
        <ToolIcon />
        <b>{tool.name.replaceAll("_", " ")}</b>
        <span className="tool-summary">{summarizeArguments(tool.arguments)}</span>
        <span className="tool-state">
          {state === "running" && <span className="spinner" />}
          {state === "done" && <CheckIcon />}
          {state === "failed" && <WarningIcon />}
          <span className={state === "done" ? "visually-hidden" : undefined}>{names[state]}</span>
          {state === "running" && tool.startedAt !== null && <RunningTime since={tool.startedAt} />}
          {tool.durationMs !== null && <span className="duration">{formatDuration(tool.durationMs)}</span>}
        </span>
        <ChevronIcon />
      </summary>
      <dl>
        {tool.arguments !== "" && (
          <>
            <dt>{words.toolArguments}</dt>
            <dd>
              <pre dir="ltr" ref={watchArguments}>
                {indentJson(tool.arguments)}
              </pre>
            </dd>
          </>
        )}
        <dt>{words.toolResult}</dt>
        <dd>
          {tool.result === null ? <p>{isRunning ? words.working : words.toolNoResult}</p> : <ToolResult text={tool.result} />}
        </dd>
      </dl>
    </details>
  );
}

const watchArguments = (element: HTMLPreElement | null) => watchScroller(element, words.toolArguments);
const watchResult = (element: HTMLPreElement | null) => watchScroller(element, words.toolResult);

/** How long a tool has been running. Hidden from screen readers, which would announce every second. */
function RunningTime({ since }: { since: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.floor(Math.max(0, now - Date.parse(since)) / 1000);
  return (
    <span className="duration" aria-hidden="true">
      {seconds > 0 && formatDuration(seconds * 1000, 0)}
    </span>
  );
}

function ToolResult({ text }: { text: string }) {
  const isMatch = useStore(searchJump, (jump) => jump?.texts.some((each) => text.includes(each)) ?? false);
  const [isOpen, setExpanded] = useState(text.length <= MAX_PREVIEW_CHARS);
  const isExpanded = isOpen || isMatch;
  return (
    <>
      <pre dir="auto" ref={watchResult}>
        {isExpanded ? text : `${text.slice(0, MAX_PREVIEW_CHARS)}…`}
      </pre>
      {!isExpanded && (
        <button type="button" className="text-button" onClick={() => setExpanded(true)}>
          {words.showAll}
        </button>
      )}
    </>
  );
}

/** The values of the arguments on one line. */
function summarizeArguments(json: string): string {
  const args = parseJson(json);
  if (typeof args !== "object" || args === null) return json.slice(0, MAX_SUMMARY_CHARS);
  return Object.values(args)
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" · ")
    .slice(0, MAX_SUMMARY_CHARS);
}

function indentJson(json: string): string {
  const value = parseJson(json);
  return value === undefined ? json : JSON.stringify(value, null, 2);
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
