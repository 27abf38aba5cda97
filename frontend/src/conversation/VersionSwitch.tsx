/** Steps between the versions of a message: ‹ 2/3 ›. */
import { useEffect, useRef } from "react";
import { chooseVersion } from "../sessions/actions";
import { useLiveClient } from "../live/context";
import { ChevronIcon } from "../ui/icons";
import { words } from "../words";
import type { VersionPlace } from "./versionPlaces";
import "./VersionSwitch.css";

type Step = -1 | 1;

/** The button that was used last. Choosing a version replaces the row, and the focus must not be lost with it. */
let usedButton: { sessionId: string; step: Step } | null = null;

interface Props {
  sessionId: string;
  place: VersionPlace;
  canAct: boolean; // the reader takes part, and the agent is not answering
}

export function VersionSwitch({ sessionId, place: { seq, version }, canAct }: Props) {
  const client = useLiveClient();
  const group = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (usedButton?.sessionId !== sessionId) return;
    const buttons = [...(group.current?.querySelectorAll("button") ?? [])];
    if (usedButton.step > 0) buttons.reverse();
    usedButton = null;
    buttons.find((button) => button.getAttribute("aria-disabled") !== "true")?.focus();
  }, [sessionId, seq]);
  const buildButton = (step: Step, label: string) => {
    const number = version.number + step;
    const isDisabled = !canAct || number < 1 || number > version.count;
    return (
      <button
        type="button"
        className={step < 0 ? "icon-button small is-previous" : "icon-button small"}
        title={label}
        aria-label={label}
        aria-disabled={isDisabled}
        onClick={() => {
          if (isDisabled) return;
          usedButton = { sessionId, step };
          void chooseVersion(client, sessionId, seq, number);
        }}
      >
        <ChevronIcon />
      </button>
    );
  };
  return (
    <div className="version-switch" role="group" aria-label={words.versionOf(version.number, version.count)} ref={group}>
      {buildButton(-1, words.previousVersion)}
      <span>
        {version.number}/{version.count}
      </span>
      {buildButton(1, words.nextVersion)}
    </div>
  );
}
