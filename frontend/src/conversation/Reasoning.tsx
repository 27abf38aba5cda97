/** The agent's reasoning, folded. While it is running, the last line is shown. */
import { ChevronIcon } from "../ui/icons";
import { words } from "../words";
import "./ToolCard.css";
import "./Fold.css";

export function Reasoning({ text, isRunning }: { text: string; isRunning: boolean }) {
  return (
    <details className="reasoning" data-running={isRunning}>
      <summary>
        <ChevronIcon />
        <span>{isRunning ? words.thinking : words.reasoning}</span>
        {isRunning && <span className="last-line">{getLastLine(text)}</span>}
      </summary>
      <div className="reasoning-text" dir="auto">
        {text}
      </div>
    </details>
  );
}

function getLastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1)?.slice(-120) ?? "";
}
