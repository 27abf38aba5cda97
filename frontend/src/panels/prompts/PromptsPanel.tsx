/** The panel of saved prompts: a person's own texts with placeholders. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { listPrompts } from "../../api/calls";
import type { SavedPrompt, Schemas } from "../../api/types";
import { confirm } from "../../ui/ConfirmDialog";
import { NameDialog } from "../../ui/NameDialog";
import { words } from "../../words";
import { PanelPage } from "../shared/PanelPage";
import { QueryResult } from "../shared/QueryResult";
import * as calls from "./promptCalls";
import "./prompts.css";

const PROMPTS_KEY = ["prompts"];
const MAX_NAME_CHARS = 100;
const MAX_PROMPT_CHARS = 20_000;

export default function PromptsPanel() {
  const queryClient = useQueryClient();
  const query = useQuery({ queryKey: PROMPTS_KEY, queryFn: listPrompts });
  const [edited, setEdited] = useState<SavedPrompt | "new" | null>(null);
  const refresh = () => queryClient.invalidateQueries({ queryKey: PROMPTS_KEY });
  const save = async (fields: Schemas["NewSavedPromptIn"]) => {
    const isSaved = await attempt(() => (edited === "new" || edited === null ? calls.createPrompt(fields) : calls.updatePrompt(edited.id, fields)));
    if (!isSaved) return;
    setEdited(null);
    await refresh();
  };
  const remove = async (prompt: SavedPrompt) => {
    const question = { title: words.deletePromptTitle(prompt.name), text: words.deletePromptText, action: words.delete };
    if ((await confirm(question)) && (await attempt(() => calls.deletePrompt(prompt.id)))) await refresh();
  };
  return (
    <PanelPage title={words.savedPrompts}>
      <p className="panel-intro">{words.promptsIntro}</p>
      <div>
        <button type="button" className="button" onClick={() => setEdited("new")}>
          {words.newPrompt}
        </button>
      </div>
      <QueryResult query={query}>
        {({ prompts }) =>
          prompts.length === 0 ? (
            <div className="panel-empty">
              <h2>{words.promptsEmpty}</h2>
            </div>
          ) : (
            <ul className="card rows-card" aria-label={words.savedPrompts}>
              {prompts.map((prompt) => (
                <li key={prompt.id} className="card-row">
                  <div className="card-row-text">
                    <b dir="auto">{prompt.name}</b>
                    <small className="prompt-text" dir="auto">
                      {prompt.text}
                    </small>
                  </div>
                  <button type="button" className="button" aria-label={words.editPrompt(prompt.name)} onClick={() => setEdited(prompt)}>
                    {words.editMessage}
                  </button>
                  <button type="button" className="text-button" aria-label={words.deletePrompt(prompt.name)} onClick={() => void remove(prompt)}>
                    {words.delete}
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </QueryResult>
      {edited !== null && <PromptEditor prompt={edited === "new" ? null : edited} fields={query.data?.fields ?? []} onClose={() => setEdited(null)} onSave={save} />}
    </PanelPage>
  );
}

interface EditorProps {
  prompt: SavedPrompt | null;
  fields: Schemas["SavedPromptsJson"]["fields"]; // besides the name and the text
  onClose: () => void;
  onSave: (fields: Schemas["NewSavedPromptIn"]) => Promise<void>;
}

function PromptEditor(props: EditorProps) {
  const [text, setText] = useState(props.prompt?.text ?? "");
  const before: Readonly<Record<string, unknown>> = { ...props.prompt };
  const [others, setOthers] = useState(() => Object.fromEntries(props.fields.map(({ name }) => [name, typeof before[name] === "string" ? before[name] : ""])));
  return (
    <NameDialog
      title={props.prompt === null ? words.newPrompt : words.editPrompt(props.prompt.name)}
      label={words.promptName}
      name={props.prompt?.name ?? ""}
      maxLength={MAX_NAME_CHARS}
      isReady={text.trim() !== ""}
      onClose={props.onClose}
      onDone={(name) => props.onSave({ name, text, ...others })}
    >
      <label className="field">
        {words.promptText}
        <textarea className="prompt-field" rows={7} dir="auto" value={text} required maxLength={MAX_PROMPT_CHARS} onChange={(event) => setText(event.target.value)} />
        <span className="hint">{words.promptTextHint}</span>
      </label>
      {props.fields.map(({ name, label, help, max_chars: maxChars }) => (
        <label key={name} className="field" title={help}>
          {label}
          <input dir="auto" maxLength={maxChars} value={others[name] ?? ""} onChange={(event) => setOthers({ ...others, [name]: event.target.value })} />
        </label>
      ))}
    </NameDialog>
  );
}
