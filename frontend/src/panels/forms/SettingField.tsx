/** One setting in a form: its input, its help, where its value comes from, and what the server says about it. */
import { useId } from "react";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import { TimezoneInput } from "../shared/TimezoneInput";
import { PictureInput } from "./PictureInput";
import { formatValue, isPinned, nameKey, parseValue, RESET, splitKey } from "./settingValues";
import type { Setting, SettingTemplate } from "./settingsApi";
import { nameChoice } from "./settingNames";

export interface FieldProps {
  setting: Setting;
  template: SettingTemplate;
  label?: string;
  draft: unknown; // undefined: unchanged
  problem?: string | undefined;
  modelNames?: readonly string[];
  onChange: (value: unknown) => void; // undefined: as it is stored
}

export function SettingField({ setting, template, label = nameKey(setting.key), draft, problem, modelNames, onChange }: FieldProps) {
  const id = useId();
  const isFixed = isPinned(setting) || !setting.can_change || template.unstorable_reason !== null;
  const isReset = draft === RESET;
  const stored = setting.is_secret ? null : setting.value;
  const value = isReset ? template.default : draft === undefined ? stored : draft;
  const describedBy = `${id}-note ${id}-problem`;
  const change = (next: unknown) => onChange(isSame(next, stored) && !setting.is_secret ? undefined : next);
  return (
    <div className="setting-field" data-changed={draft !== undefined}>
      <label id={`${id}-label`} htmlFor={id}>
        {label}
      </label>
      <SettingInput
        id={id}
        value={value}
        setting={setting}
        template={template}
        isDisabled={isFixed}
        isInvalid={problem !== undefined}
        describedBy={describedBy}
        modelNames={modelNames ?? []}
        onChange={change}
      />
      <p className="hint" id={`${id}-note`}>
        {template.help !== "" && <span>{template.help} </span>}
        {template.is_list && template.kind !== "choice" && <span>{setupWords.listHint}. </span>}
        <FieldSource setting={setting} template={template} isReset={isReset} />
      </p>
      {setting.problem !== null && (
        <p className="field-problem">
          {setupWords.valueUnusable} {setting.problem}
        </p>
      )}
      <p className="field-problem" id={`${id}-problem`} role="alert" dir="auto">
        {problem}
      </p>
      {!isFixed && (setting.source.kind === "database" || isReset) && (
        <button
          type="button"
          className="text-button"
          aria-label={isReset ? undefined : setting.is_secret ? setupWords.entryRemove(label) : setupWords.resetLabel(label)}
          onClick={() => onChange(isReset ? undefined : RESET)}
        >
          {isReset ? setupWords.keepValue : setting.is_secret ? setupWords.removeSecret : setupWords.resetToDefault}
        </button>
      )}
    </div>
  );
}

function FieldSource({ setting, template, isReset }: { setting: Setting; template: SettingTemplate; isReset: boolean }) {
  const { source } = setting;
  const parts = [
    source.kind === "file" && setupWords.setInFile(source.line),
    source.kind === "environment" && setupWords.setInEnvironment(source.variable),
    source.kind === "database" && !isReset && !setting.is_secret && setupWords.isChanged,
    source.kind === "default" && !setting.is_secret && (!template.is_optional && setting.value === null ? setupWords.secretNotSet : setupWords.isDefault),
    isReset && setupWords.willReset,
    setting.is_secret && !isReset && (setting.is_set ? setupWords.secretSet(setting.hint) : setupWords.secretNotSet),
    template.is_terminal_only && setupWords.setTerminalOnly,
    template.needs_restart && setupWords.needsRestart,
  ].filter(Boolean);
  return (
    <>
      <span className="field-source">{parts.join(" · ")}</span>
      {template.unstorable_reason !== null && <span> {template.unstorable_reason}</span>}
    </>
  );
}

interface InputProps {
  id: string;
  value: unknown;
  setting: Pick<Setting, "is_secret" | "is_set" | "key">;
  template: Pick<SettingTemplate, "kind" | "is_list" | "choices" | "minimum" | "maximum" | "is_optional" | "default">;
  isDisabled: boolean;
  isInvalid: boolean;
  describedBy: string;
  modelNames: readonly string[];
  onChange: (value: unknown) => void;
}

export function SettingInput({ id, value, setting, template, isDisabled, isInvalid, describedBy, modelNames, onChange }: InputProps) {
  const text = formatValue(value);
  const lastPart = splitKey(setting.key).at(-1) ?? "";
  const common = { id, disabled: isDisabled, "aria-invalid": isInvalid, "aria-describedby": describedBy };
  const update = (next: string) => onChange(parseValue(next, template));
  if (setting.is_secret) {
    return (
      <input
        {...common}
        type="password"
        autoComplete="off"
        value={text}
        placeholder={setting.is_set ? "••••••••" : ""}
        onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value)}
      />
    );
  }
  if (template.kind === "image") return <PictureInput {...common} value={text} onChange={(url) => onChange(url)} />;
  if (template.kind === "boolean" && !template.is_list) {
    return (
      <select {...common} value={text} onChange={(event) => onChange(event.target.value === "" ? null : event.target.value === "true")}>
        {(value === null || value === undefined) && <option value="">{setupWords.notSetChoice}</option>}
        <option value="true">{words.switchOn}</option>
        <option value="false">{words.switchOff}</option>
      </select>
    );
  }
  if (template.kind === "choice" && !template.is_list) {
    return (
      <select {...common} value={text} onChange={(event) => onChange(event.target.value === "" ? null : event.target.value)}>
        {(template.is_optional || text === "") && <option value="">{setupWords.notSetChoice}</option>}
        {template.choices.map((choice) => (
          <option key={choice} value={choice}>
            {nameChoice(lastPart, choice)}
          </option>
        ))}
      </select>
    );
  }
  if (template.kind === "choice") {
    const chosen = Array.isArray(value) ? value : [];
    return (
      <span className="choice-list" role="group" id={id} aria-labelledby={`${id}-label`} aria-describedby={describedBy}>
        {template.choices.map((choice) => (
          <label key={choice}>
            <input
              type="checkbox"
              checked={chosen.includes(choice)}
              disabled={isDisabled}
              onChange={(event) => onChange(template.choices.filter((each) => (each === choice ? event.target.checked : chosen.includes(each))))}
            />
            {nameChoice(lastPart, choice)}
          </label>
        ))}
      </span>
    );
  }
  if (template.is_list || template.kind === "long_text") {
    const lines = text.split("\n");
    const offered = template.kind === "model" ? modelNames : lastPart === "toolsets" ? Object.keys(words.toolsetNames) : [];
    const names = template.is_list ? offered.filter((name) => !lines.includes(name)) : [];
    const area = <textarea {...common} dir="auto" rows={template.kind === "long_text" ? 5 : 3} spellCheck={template.kind === "long_text"} value={text} onChange={(event) => onChange(template.is_list ? event.target.value.split("\n") : event.target.value || null)} onBlur={(event) => update(event.target.value)} />;
    if (names.length === 0 || isDisabled) return area;
    return (
      <>
        {area}
        <select value="" aria-label={setupWords.addChoice} onChange={(event) => update([text, event.target.value].join("\n"))}>
          <option value="">{setupWords.addChoice}</option>
          {names.map((name) => (
            <option key={name} value={name}>
              {lastPart === "toolsets" ? (words.toolsetNames[name] ?? name) : name}
            </option>
          ))}
        </select>
      </>
    );
  }
  if (template.kind === "timezone") return <TimezoneInput {...common} value={text} onChange={update} />;
  if (template.kind === "integer" || template.kind === "number") {
    return (
      <input
        {...common}
        type="number"
        step={template.kind === "integer" ? 1 : "any"}
        {...(template.minimum !== null && { min: template.minimum })}
        {...(template.maximum !== null && { max: template.maximum })}
        value={text}
        onChange={(event) => update(event.target.value)}
      />
    );
  }
  const list = template.kind === "model" && modelNames.length > 0 ? `${id}-models` : undefined;
  return (
    <>
      <input {...common} dir="auto" spellCheck={false} autoComplete="off" value={text} list={list} onChange={(event) => onChange(event.target.value === "" ? null : event.target.value)} />
      {list !== undefined && (
        <datalist id={list}>
          {modelNames.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </>
  );
}

const isSame = (one: unknown, other: unknown) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
