/** The settings of this browser: theme, language, notifications and shortcuts. */
import { useState } from "react";
import { areSingleKeysOn, setSingleKeys } from "../../layout/singleKeyShortcuts";
import { getTheme, setTheme, type Theme } from "../../layout/theme";
import { storage } from "../../lib/storage";
import { useStore } from "../../lib/store";
import { notificationState, setNotifications } from "../../notifications/browserNotifications";
import { SegmentedControl } from "../../ui/SegmentedControl";
import { getLanguage, LANGUAGES, words, type Language } from "../../words";
import { PushSetting } from "./PushSetting";

export function Appearance() {
  const [theme, setChosenTheme] = useState(getTheme);
  const languages = Object.entries(LANGUAGES) as [Language, string][];
  return (
    <div className="setting-lines">
      <div className="setting-line">
        <span>{words.themeLabel}</span>
        <SegmentedControl<Theme>
          label={words.themeLabel}
          value={theme}
          onChange={(value) => {
            setChosenTheme(value);
            setTheme(value);
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
        <SegmentedControl
          label={words.language}
          value={getLanguage()}
          onChange={(value) => {
            storage.set("language", value);
            location.reload();
          }}
          choices={languages}
        />
      </div>
      <NotificationSetting />
      <PushSetting />
      <SingleKeySetting />
    </div>
  );
}

function SingleKeySetting() {
  const areOn = useStore(areSingleKeysOn);
  return (
    <>
      <div className="setting-line">
        <span>{words.singleKeyShortcuts}</span>
        <SegmentedControl
          label={words.singleKeyShortcuts}
          value={areOn ? "on" : "off"}
          onChange={(value) => setSingleKeys(value === "on")}
          choices={[
            ["off", words.switchOff],
            ["on", words.switchOn],
          ]}
        />
      </div>
      <p className="hint">{words.singleKeyShortcutsHint}</p>
    </>
  );
}

/** The browser asks for permission when the setting is switched on, and not before. */
function NotificationSetting() {
  const state = useStore(notificationState);
  return (
    <>
      <div className="setting-line">
        <span>{words.notifyAnswers}</span>
        {state !== "unsupported" && (
          <SegmentedControl
            label={words.notifyAnswers}
            value={state === "on" ? "on" : "off"}
            onChange={(value) => void setNotifications(value === "on")}
            choices={[
              ["off", words.switchOff],
              ["on", words.switchOn],
            ]}
          />
        )}
      </div>
      <p className="hint" role="status">
        {state === "denied" ? words.notificationsDenied : state === "unsupported" ? words.notificationsUnsupported : words.notifyAnswersHint}
      </p>
    </>
  );
}
