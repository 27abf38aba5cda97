/** A form for several settings, made from the server's description of them. */
import { Fragment } from "react";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { SettingField } from "./SettingField";
import { getHeading, nameKey, splitKey } from "./settingValues";
import type { Setting, Settings } from "./settingsApi";
import { useSettingsDraft } from "./useSettingsDraft";
import "./forms.css";

const CHOSEN_NAME = ".<name>"; // the owner has chosen the last part of the key

interface Props {
  settings: Settings;
  shown: readonly Setting[];
  modelNames?: readonly string[];
  namedParts?: number; // the first parts of every key, which the heading above the form names already
}

export function SettingsForm({ settings, shown, modelNames = [], namedParts = 0 }: Props) {
  const keys = shown.map(({ key }) => key);
  const form = useSettingsDraft(settings, keys);
  const templates = new Map(settings.templates.map((template) => [template.key, template]));
  const headings = shown.map(({ key }) => getHeading(key, namedParts));
  return (
    <form
      className="settings-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void form.save();
      }}
    >
      {shown.map((setting, index) => {
        const template = templates.get(setting.template);
        if (template === undefined) return null;
        const own = headings[index] ?? "";
        const isNew = own !== (headings[index - 1] ?? "");
        return (
          <Fragment key={setting.key}>
            {isNew && own !== "" && <h3>{own}</h3>}
            <SettingField
              setting={setting}
              template={template}
              label={setting.template.endsWith(CHOSEN_NAME) ? (splitKey(setting.key).at(-1) ?? "") : nameKey(setting.key)}
              draft={form.draft.get(setting.key)}
              problem={form.problems.get(setting.key)}
              modelNames={modelNames}
              onChange={(value) => form.change(setting.key, value)}
            />
          </Fragment>
        );
      })}
      <SaveBar count={form.draft.size} problem={form.problems.get("")} isSaving={form.isSaving} onDiscard={form.discard} />
    </form>
  );
}

export function SaveBar(props: { count: number; problem: string | undefined; isSaving: boolean; onDiscard: () => void }) {
  return (
    <div className="save-bar" data-active={props.count > 0}>
      <p role="alert" className="field-problem" dir="auto">
        {props.problem}
      </p>
      <button type="submit" className="button primary" disabled={props.count === 0 || props.isSaving}>
        {words.save}
      </button>
      <button type="button" className="button" disabled={props.count === 0 || props.isSaving} onClick={props.onDiscard}>
        {setupWords.discard}
      </button>
      <span role="status" className="hint">
        {props.count > 0 && setupWords.unsaved(props.count)}
      </span>
    </div>
  );
}
