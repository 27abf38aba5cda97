/** A tool that the agent used: what it was given, what came back, and how that went. */
import { useEffect, useState } from "react";
import { lasted } from "../lib/time";
import { CheckIcon, ChevronIcon, ToolIcon, WarningIcon } from "../ui/icons";
import { words } from "../words";
import type { ToolPart } from "./rows";

const SHORT = 2000; // characters of a result that are shown at first

export function ToolCard({ tool, running }: { tool: ToolPart; running: boolean }) {
  const state = tool.failed ? "failed" : tool.result !== null ? "done" : running ? "running" : "unknown";
  const names = { failed: words.toolFailed, done: words.toolDone, running: words.toolRunning, unknown: "" };
  return (
    <details className="tool" data-state={state}>
      <summary>
        <ToolIcon />
        <b>{tool.name.replaceAll("_", " ")}</b>
        <span className="tool-brief">{brief(tool.arguments)}</span>
        <span className="tool-state">
          {state === "running" && <span className="spinner" />}
          {state === "done" && <CheckIcon />}
          {state === "failed" && <WarningIcon />}
          <span className={state === "done" ? "visually-hidden" : undefined}>{names[state]}</span>
          {state === "running" && tool.beganAt !== null && <Counting since={tool.beganAt} />}
          {tool.took !== null && <span className="lasted">{lasted(tool.took)}</span>}
        </span>
        <ChevronIcon />
      </summary>
      <dl>
        {tool.arguments !== "" && (
          <>
            <dt>{words.toolArguments}</dt>
            <dd>
              <pre dir="ltr">{indented(tool.arguments)}</pre>
            </dd>
          </>
        )}
        <dt>{words.toolResult}</dt>
        <dd>
          {tool.result === null ? <p>{running ? words.working : words.toolNoResult}</p> : <Result text={tool.result} />}
        </dd>
      </dl>
    </details>
  );
}

/** How long it has been going on, by the second; not for those who are read to, whom it would never let be. */
function Counting({ since }: { since: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.floor(Math.max(0, now - Date.parse(since)) / 1000);
  return (
    <span className="lasted" aria-hidden="true">
      {seconds > 0 && lasted(seconds * 1000, 0)}
    </span>
  );
}

function Result({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(text.length <= SHORT);
  return (
    <>
      <pre dir="auto">{isWhole ? text : `${text.slice(0, SHORT)}…`}</pre>
      {!isWhole && (
        <button type="button" className="text-button" onClick={() => setWhole(true)}>
          {words.showAll}
        </button>
      )}
    </>
  );
}

/** The arguments on one line, as shortly as they can be read. */
function brief(given: string): string {
  const read = parsed(given);
  if (typeof read !== "object" || read === null) return given.slice(0, 80);
  return Object.values(read)
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" · ")
    .slice(0, 80);
}

function indented(given: string): string {
  const read = parsed(given);
  return read === undefined ? given : JSON.stringify(read, null, 2);
}

function parsed(given: string): unknown {
  try {
    return JSON.parse(given) as unknown;
  } catch {
    return undefined;
  }
}
