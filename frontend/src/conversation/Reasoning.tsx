/** What the agent thought before it spoke: folded, unless it is thinking just now. */
import { ChevronIcon } from "../ui/icons";
import { words } from "../words";

export function Reasoning({ text, running }: { text: string; running: boolean }) {
  return (
    <details className="reasoning" data-running={running}>
      <summary>
        <ChevronIcon />
        <span>{running ? words.thinking : words.reasoning}</span>
        {running && <span className="last-line">{lastLine(text)}</span>}
      </summary>
      <div className="reasoning-text" dir="auto">
        {text}
      </div>
    </details>
  );
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1)?.slice(-120) ?? "";
}
