/** The settings of the server, for owners: a section at a time, chosen by the address (`/server#models`). */
import { useQuery } from "@tanstack/react-query";
import * as calls from "../../api/calls";
import { navigate, useLocation } from "../../lib/router";
import { setupWords } from "../../words/setup";
import { listCollections, listPlainSettings, SECTION_IDS } from "../forms/sections";
import { SettingsForm } from "../forms/SettingsForm";
import { useSettings, type Settings } from "../forms/settingsApi";
import { PanelPage } from "../shared/PanelPage";
import { QueryResult } from "../shared/QueryResult";
import { Collection } from "./Collection";
import { History } from "./History";
import { Models } from "./Models";
import { Prune } from "./Prune";
import { RewriteFile } from "./RewriteFile";
import { SpeechStatus } from "./SpeechStatus";
import "./server.css";

const HISTORY = "history";
const WITH_MODELS = new Set(["models", "profiles"]); // a model can be chosen there
const ONE_PREFIX = new Set(["memory", "budgets", "people"]); // all their keys begin with the title of the section

export default function ServerPanel() {
  const query = useSettings();
  const { hash } = useLocation();
  return (
    <PanelPage title={setupWords.serverSettings}>
      <QueryResult query={query}>
        {(settings) => {
          const sections = [...SECTION_IDS.filter((id) => hasContent(settings, id)), HISTORY];
          const current = sections.find((id) => id === hash) ?? "models";
          return (
            <>
              <nav className="section-tabs" aria-label={setupWords.serverSections}>
                {sections.map((id) => (
                  <button
                    key={id}
                    type="button"
                    className="chip-button"
                    aria-current={id === current ? "page" : undefined}
                    onClick={() => navigate("server", { hash: id })}
                  >
                    {setupWords.sections[id]}
                  </button>
                ))}
              </nav>
              {settings.pending_restart.length > 0 && <p className="panel-notice">{setupWords.pendingRestart(settings.pending_restart.join(", "))}</p>}
              <Section key={current} id={current} settings={settings} />
            </>
          );
        }}
      </QueryResult>
    </PanelPage>
  );
}

const hasContent = (settings: Settings, id: string) =>
  id === "models" || listPlainSettings(settings, id).length > 0 || listCollections(settings, id).length > 0;

function Section({ id, settings }: { id: string; settings: Settings }) {
  const models = useQuery({ queryKey: ["models", null], queryFn: () => calls.listModels(null), staleTime: 60_000 });
  const offered = useQuery({ queryKey: ["offered-models"], queryFn: calls.listOfferedModels, staleTime: 300_000, enabled: WITH_MODELS.has(id) });
  const listed = offered.data?.providers.flatMap((provider) => provider.models) ?? [];
  const modelNames = [...new Set([...(models.data?.models.map(({ name }) => name) ?? []), ...listed])];
  if (id === HISTORY) return <History version={settings.version} />;
  const shown = listPlainSettings(settings, id);
  return (
    <>
      {id === "models" && <Models settings={settings} />}
      {id === "profiles" && <p className="panel-intro">{setupWords.profilesIntro}</p>}
      {shown.length > 0 && (
        <section className="card" aria-labelledby={`${id}-title`}>
          <h2 id={`${id}-title`} className="section-title">
            {id === "models" ? setupWords.modelChoices : setupWords.sections[id]}
          </h2>
          <SettingsForm settings={settings} shown={shown} modelNames={modelNames} namedParts={ONE_PREFIX.has(id) ? 1 : 0} />
        </section>
      )}
      {listCollections(settings, id).map((collection) => (
        <Collection key={collection} settings={settings} collection={collection} modelNames={modelNames} />
      ))}
      {id === "turns" && <SpeechStatus />}
      {id === "conversations" && <Prune />}
      {id === "conversations" && <RewriteFile />}
      {settings.problems.length > 0 && (
        <p className="field-problem" role="alert">
          {settings.problems.map(({ message }) => message).join("\n")}
        </p>
      )}
    </>
  );
}
