/** Which model answers in this conversation. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Session } from "../api/types";
import { useCenter } from "../live/context";
import { ChevronDownIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices } from "../ui/Menu";
import { words } from "../words";
import { change } from "./actions";

const DEFAULT = "";

export function ModelMenu({ session }: { session: Session }) {
  const center = useCenter();
  const { data } = useQuery({ queryKey: ["models"], queryFn: calls.models, staleTime: 300_000 });
  if (data === undefined) return null;
  const current = session.chosen_model ?? data.default;
  const others = [...new Set([...data.models, current])].filter((model) => model !== data.default);
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
        <MenuChoice value={DEFAULT}>{words.theDefault(shortName(data.default))}</MenuChoice>
        {others.map((model) => (
          <MenuChoice key={model} value={model}>
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
