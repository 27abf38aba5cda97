/** How the page looks, and in which language it speaks. */
import { useState } from "react";
import { keep } from "../../lib/keep";
import { chooseTheme, theme, type Theme } from "../../shell/theme";
import { language, LANGUAGES, words, type Language } from "../../words";
import { Segmented } from "../parts/Segmented";

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
    </div>
  );
}
