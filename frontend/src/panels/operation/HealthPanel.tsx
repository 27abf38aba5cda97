/** What `palaver doctor` finds, with the fix for everything that is wrong; for owners. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { formatDateTime } from "../../format/time";
import { CopyButton } from "../../ui/CopyButton";
import { Link } from "../../ui/Link";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import type { Finding, HealthReport } from "../shared/calls";
import * as calls from "../shared/calls";
import { PanelPage } from "../shared/PanelPage";
import "./operation.css";

const SEVERITIES = ["problem", "warning", "ok"] as const;

export default function HealthPanel() {
  const [asksModel, setAsksModel] = useState(false);
  const query = useQuery({
    queryKey: ["health", asksModel],
    queryFn: () => calls.getHealth(asksModel),
    staleTime: Infinity, // checked when the person asks for it
    refetchOnWindowFocus: false,
    retry: false,
  });
  return (
    <PanelPage title={words.health}>
      <p className="panel-intro">{words.healthIntro}</p>
      <div className="health-controls">
        <button type="button" className="button" disabled={query.isFetching} onClick={() => void query.refetch()}>
          {words.healthCheckAgain}
        </button>
        <button type="button" className="button" aria-pressed={asksModel} onClick={() => setAsksModel(!asksModel)}>
          {words.healthAskModel}
        </button>
      </div>
      <div role="status">
        {query.isFetching && (
          <p className="panel-note">
            <span className="spinner" /> {words.healthChecking}
          </p>
        )}
        {!query.isFetching && query.data !== undefined && <p className="health-summary">{summarize(query.data)}</p>}
      </div>
      {query.isError && !query.isFetching && (
        <p className="panel-note" role="alert">
          {words.panelLoadFailed}
        </p>
      )}
      {query.data !== undefined && <Report report={query.data} />}
    </PanelPage>
  );
}

function summarize({ findings }: HealthReport): string {
  const count = (severity: Finding["severity"]) => findings.filter((finding) => finding.severity === severity).length;
  if (count("problem") + count("warning") === 0) return words.healthGood;
  return words.healthCounts(count("problem"), count("warning"));
}

function Report({ report }: { report: HealthReport }) {
  return (
    <>
      {SEVERITIES.map((severity) => {
        const findings = report.findings.filter((finding) => finding.severity === severity);
        return (
          findings.length > 0 && (
            <section key={severity} className="card rows-card" aria-label={words.healthSeverities[severity]}>
              <ul className="item-list">
                {findings.map((finding, index) => (
                  <FindingRow key={index} finding={finding} />
                ))}
              </ul>
            </section>
          )
        );
      })}
      <p className="hint">{words.healthCheckedAt(report.version, formatDateTime(report.checked_at))}</p>
    </>
  );
}

function FindingRow({ finding }: { finding: Finding }) {
  const { severity, subject, text, fix } = finding;
  const command = fix?.includes(finding.facts.command ?? "\0") === true ? finding.facts.command : undefined;
  const place = severity === "ok" ? null : findPlace(finding.code);
  return (
    <li className="card-row health-finding" data-severity={severity}>
      <div className="card-row-text">
        <b>
          <span className="health-mark">{words.healthSeverities[severity]}</span> {subject}
        </b>
        <span dir="auto">
          <CodeText text={text} />
        </span>
        {fix !== null && (
          <span className="health-fix">
            {words.healthFix} <CodeText text={fix} command={command} />
          </span>
        )}
        {place !== null && (
          <Link to={place.to} section={place.section} className="button">
            {place.label}
          </Link>
        )}
      </div>
      {command !== undefined && <CopyButton text={command} label={setupWords.healthCopyCommand(subject)} />}
    </li>
  );
}

/** A text in which the command, or else what is between backticks, looks like code. */
function CodeText({ text, command }: { text: string; command?: string | undefined }) {
  const parts = command === undefined ? text.split("`") : [text.slice(0, text.indexOf(command)), command, text.slice(text.indexOf(command) + command.length)];
  return parts.map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}

interface Place {
  to: string; // path
  section: string;
  label: string;
}

/** Where on the page something can be fixed; null if only a terminal can do it. */
function findPlace(code: string): Place | null {
  if (code === "model_over_budget") return { to: "server", section: "budgets", label: setupWords.openBudgets };
  if (code.startsWith("model_")) return { to: "server", section: "models", label: setupWords.openModels };
  if (code.startsWith("account_") || code.startsWith("sign_in_") || code === "deliveries_failed") return { to: "platforms", section: "", label: setupWords.openPlatforms };
  if (code.startsWith("backup_")) return { to: "server", section: "jobs", label: setupWords.openBackups };
  return code === "setting_problem" ? { to: "server", section: "", label: setupWords.openSettings } : null;
}
