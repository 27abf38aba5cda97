/** Chooses among all models that the providers offer: a list of hundreds, narrowed down by typing. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import * as calls from "../api/calls";
import { describeError } from "../api/errors";
import { closeModelDialog, type ModelChoice } from "../layout/dialogs";
import { Dialog } from "../ui/Dialog";
import { SearchField } from "../ui/SearchField";
import { words } from "../words";
import { findModels } from "./modelSearch";
import "./ModelDialog.css";

const VISIBLE_ROWS = 10;

export default function ModelDialog({ choice }: { choice: ModelChoice }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(choice.current);
  const { data, error } = useQuery({ queryKey: ["offered-models"], queryFn: calls.listOfferedModels, staleTime: 300_000 });
  const providers = findModels(data?.providers ?? [], text);
  const shown = providers.flatMap(({ models }) => models);
  const selected = shown.includes(chosen) ? chosen : (shown[0] ?? "");
  const submit = (model: string) => {
    if (model === "") return;
    closeModelDialog();
    choice.choose(model);
  };
  return (
    <Dialog label={words.chooseModel} onClose={closeModelDialog}>
      <form
        className="model-dialog"
        onSubmit={(event) => {
          event.preventDefault();
          submit(selected);
        }}
      >
        <h2>{words.chooseModel}</h2>
        <SearchField text={text} label={words.searchModels} onChange={setText} />
        <select size={VISIBLE_ROWS} value={selected} aria-label={words.model} onChange={(event) => setChosen(event.target.value)} onDoubleClick={() => submit(selected)}>
          {providers.map(({ provider, title, models }) => (
            <optgroup key={provider} label={title}>
              {models.map((model) => (
                <option key={model} value={model}>
                  {model.slice(provider.length + 1)}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
        <p className="hint" role="status">
          {error !== null ? describeError(error) : data === undefined ? words.loadingModels : words.modelsFound(shown.length)}
        </p>
        {data?.providers
          .filter((each) => each.error !== null)
          .map((each) => (
            <p key={each.provider} className="hint">
              {words.modelsUnknown(each.title)} <span lang="en">{each.error}</span>
            </p>
          ))}
        <div className="dialog-actions">
          <button type="button" className="button" onClick={closeModelDialog}>
            {words.cancel}
          </button>
          <button type="submit" className="button primary" disabled={selected === ""}>
            {words.useModel}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
