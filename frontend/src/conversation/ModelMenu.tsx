/** Which model answers in this conversation. */
import type { Session } from "../api/types";
import { short } from "../lib/numbers";
import { useCenter } from "../live/context";
import { ChevronDownIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices } from "../ui/Menu";
import { words } from "../words";
import { change } from "./actions";
import { useModels } from "./models";

const DEFAULT = "";

export function ModelMenu({ session }: { session: Session }) {
  const center = useCenter();
  const data = useModels(session);
  if (data === undefined) return null;
  const current = session.chosen_model ?? data.default;
  const windows = new Map(data.models.map((model) => [model.name, model.context_window]));
  const others = [...windows.keys()].filter((model) => model !== data.default);
  const hint = (model: string) => {
    const tokens = windows.get(model) ?? null;
    return tokens === null ? {} : { hint: words.modelTakes(short(tokens)) };
  };
  return (
    <Menu
      button={
        <button type="button" className="chip-button" title={words.modelFor(current)} aria-label={words.modelFor(current)}>
          <span className="model-name">{shortName(current)}</span>
          <ChevronDownIcon />
        </button>
      }
    >
      <MenuChoices
        label={words.model}
        value={session.chosen_model ?? DEFAULT}
        onChange={(value) => void change(center, [session.id], { model: value === DEFAULT ? null : value })}
      >
        <MenuChoice value={DEFAULT} {...hint(data.default)}>
          {words.theDefault(shortName(data.default))}
        </MenuChoice>
        {others.map((model) => (
          <MenuChoice key={model} value={model} {...hint(model)}>
            {model}
          </MenuChoice>
        ))}
      </MenuChoices>
    </Menu>
  );
}

/** A model without its provider: `openai:gpt-5` is `gpt-5`. */
function shortName(model: string): string {
  return model.slice(model.indexOf(":") + 1);
}
