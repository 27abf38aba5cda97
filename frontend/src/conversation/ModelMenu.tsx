/** The menu that chooses the model of a conversation: a button of its own, or a part of the conversation's menu. */
import { MoreModelsItem } from "../agent/MoreModelsItem";
import type { Models, Session } from "../api/types";
import { formatCount } from "../format/numbers";
import { useLiveClient } from "../live/context";
import { updateSessions } from "../sessions/actions";
import { ChevronDownIcon, SparkIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices, SubMenu } from "../ui/Menu";
import { words } from "../words";
import { useModels } from "./models";
import "../agent/agent.css";

const DEFAULT_MODEL = "";

export function ModelMenu({ session }: { session: Session }) {
  const data = useModels(session);
  if (data === undefined) return null;
  const current = session.chosen_model ?? data.default;
  return (
    <Menu
      button={
        <button type="button" className="chip-button" title={words.modelLabel(current)} aria-label={words.modelLabel(current)}>
          <span className="model-name">{removeProvider(current)}</span>
          <ChevronDownIcon />
        </button>
      }
    >
      <ModelChoices session={session} data={data} label={words.model} />
    </Menu>
  );
}

export function ModelSubMenu({ session }: { session: Session }) {
  const data = useModels(session);
  if (data === undefined) return null;
  return (
    <SubMenu icon={<SparkIcon />} label={words.modelLabel(removeProvider(session.chosen_model ?? data.default))}>
      <ModelChoices session={session} data={data} />
    </SubMenu>
  );
}

function ModelChoices({ session, data, label }: { session: Session; data: Models; label?: string }) {
  const client = useLiveClient();
  const windows = new Map(data.models.map((model) => [model.name, model.context_window]));
  const others = [...windows.keys()].filter((model) => model !== data.default);
  const buildHint = (model: string) => {
    const tokens = windows.get(model) ?? null;
    return tokens === null ? {} : { hint: words.modelContextSize(formatCount(tokens)) };
  };
  const choose = (model: string | null) => void updateSessions(client, [session.id], { model });
  return (
    <>
      <MenuChoices
        {...(label !== undefined && { label })}
        value={session.chosen_model ?? DEFAULT_MODEL}
        onChange={(value) => choose(value === DEFAULT_MODEL ? null : value)}
      >
        <MenuChoice value={DEFAULT_MODEL} {...buildHint(data.default)}>
          {words.defaultModelChoice(removeProvider(data.default))}
        </MenuChoice>
        {others.map((model) => (
          <MenuChoice key={model} value={model} {...buildHint(model)}>
            {model}
          </MenuChoice>
        ))}
      </MenuChoices>
      {data.are_more_offered && <MoreModelsItem current={session.chosen_model ?? data.default} choose={choose} />}
    </>
  );
}

/** A model without its provider: `openai:gpt-5` is `gpt-5`. */
function removeProvider(model: string): string {
  return model.slice(model.indexOf(":") + 1);
}
