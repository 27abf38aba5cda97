/** How the page looks, in which language it speaks, when it tells of an answer, and which keys it listens to. */
import { useState } from "react";
import { useStore } from "../../lib/store";
import { keep } from "../../lib/keep";
import { notices, wantNotices, type Notices } from "../../ready/notices";
import { allowSingleKeys, singleKeys } from "../../shell/Shortcuts";
import { chooseTheme, theme, type Theme } from "../../shell/theme";
import { language, LANGUAGES, words, type Language } from "../../words";
import { Segmented } from "../../ui/Segmented";

export function Appearance() {
  const [chosen, setChosen] = useState(theme);
  const languages = Object.entries(LANGUAGES) as [Language, string][];
  return (
    <div className="setting-lines">
      <div className="setting-line">
        <span>{words.themeOf}</span>
        <Segmented<Theme>
          label={words.themeOf}
          value={chosen}
          onChange={(value) => {
            setChosen(value);
            chooseTheme(value);
          }}
          choices={[
            ["system", words.themeSystem],
            ["light", words.themeLight],
            ["dark", words.themeDark],
          ]}
        />
      </div>
      <div className="setting-line">
        <span>{words.language}</span>
        <Segmented
          label={words.language}
          value={language()}
          onChange={(value) => {
            keep("language", value);
            location.reload();
          }}
          choices={languages}
        />
      </div>
      <ReadyNotices />
      <SingleKeys />
    </div>
  );
}

function SingleKeys() {
  const areAllowed = useStore(singleKeys, (allowed) => allowed);
  return (
    <>
      <div className="setting-line">
        <span>{words.singleKeys}</span>
        <Segmented
          label={words.singleKeys}
          value={areAllowed ? "on" : "off"}
          onChange={(value) => allowSingleKeys(value === "on")}
          choices={[
            ["off", words.switchedOff],
            ["on", words.switchedOn],
          ]}
        />
      </div>
      <p className="hint">{words.singleKeysHint}</p>
    </>
  );
}

const itself = (value: Notices) => value;

/** The browser is asked when somebody switches it on, and not before. */
function ReadyNotices() {
  const state = useStore(notices, itself);
  return (
    <>
      <div className="setting-line">
        <span>{words.tellReady}</span>
        {state !== "impossible" && (
          <Segmented
            label={words.tellReady}
            value={state === "on" ? "on" : "off"}
            onChange={(value) => void wantNotices(value === "on")}
            choices={[
              ["off", words.switchedOff],
              ["on", words.switchedOn],
            ]}
          />
        )}
      </div>
      <p className="hint" role="status">
        {state === "denied" ? words.tellDenied : state === "impossible" ? words.tellImpossible : words.tellHint}
      </p>
    </>
  );
}
