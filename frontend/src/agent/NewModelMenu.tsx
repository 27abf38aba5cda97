/** The menu that chooses the model of the next conversation, before its first message. */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import { ChevronDownIcon, SparkIcon } from "../ui/icons";
import { Menu, MenuChoice, MenuChoices } from "../ui/Menu";
import { words } from "../words";
import { MoreModelsItem } from "./MoreModelsItem";
import { getProfileModel, useProfiles } from "./profiles";
import "./agent.css";

const DEFAULT_MODEL = "";

interface Props {
  profile: string | null;
  model: string | null; // null: the default of the profile or the server
  onChange: (model: string | null) => void;
}

export function NewModelMenu({ profile, model, onChange }: Props) {
  const profileModel = getProfileModel(useProfiles(), profile);
  const { data } = useQuery({ queryKey: ["models", profileModel], queryFn: () => calls.listModels(profileModel), staleTime: 300_000 });
  if (data === undefined) return null;
  const standard = profileModel ?? data.default;
  const others = [...new Set([...data.models.map((each) => each.name), ...(model === null ? [] : [model])])].filter((name) => name !== standard);
  if (others.length === 0 && !data.are_more_offered) return null;
  return (
    <Menu
      align="start"
      button={
        <button type="button" className="chip-button" aria-label={words.modelLabel(model ?? standard)} title={words.modelLabel(model ?? standard)}>
          <SparkIcon />
          <span className="model-name">{removeProvider(model ?? standard)}</span>
          <ChevronDownIcon />
        </button>
      }
    >
      <MenuChoices label={words.model} value={model ?? DEFAULT_MODEL} onChange={(value) => onChange(value === DEFAULT_MODEL ? null : value)}>
        <MenuChoice value={DEFAULT_MODEL}>{words.defaultModelChoice(removeProvider(standard))}</MenuChoice>
        {others.map((name) => (
          <MenuChoice key={name} value={name}>
            {name}
          </MenuChoice>
        ))}
      </MenuChoices>
      {data.are_more_offered && <MoreModelsItem current={model ?? standard} choose={onChange} />}
    </Menu>
  );
}

function removeProvider(model: string): string {
  return model.slice(model.indexOf(":") + 1);
}
