/** The panel of settings. */
import { useEffect, type ReactNode } from "react";
import { navigate, useLocation } from "../../lib/router";
import { useMe } from "../../live/context";
import { words } from "../../words";
import { PanelPage } from "../shared/PanelPage";
import { About } from "./About";
import { Account } from "./Account";
import { Appearance } from "./Appearance";
import { Devices } from "./Devices";
import { ImportSection } from "./ImportSection";
import { LinkedAccounts } from "./LinkedAccounts";
import { MyData } from "./MyData";
import { Passkeys } from "./Passkeys";
import { PolicyList } from "./PolicyList";
import { SharedCopies } from "./SharedCopies";
import { Tokens } from "./Tokens";
import "./settings.css";

export default function SettingsPanel() {
  const me = useMe();
  const { hash } = useLocation();
  useEffect(() => showSection(hash), [hash]);
  const sections: [string, string, ReactNode][] = [
    ["appearance", words.appearance, <Appearance />],
    ["conversations", words.policies, <PolicyList isOwner={me.person.role === "owner"} />],
    ["account", words.signInSettings, <Account me={me} />],
    ["passkeys", words.passkeys, <Passkeys />],
    ["devices", words.devices, <Devices />],
    ["links", words.links, <LinkedAccounts />],
    ["tokens", words.tokens, <Tokens isOwner={me.person.role === "owner"} />],
    ["shares", words.shares, <SharedCopies personId={me.person.id} isOwner={me.person.role === "owner"} />],
    ["data", words.yourData, <MyData />],
    ["import", words.importConversations, <ImportSection />],
    ["about", words.about, <About me={me} />],
  ];
  return (
    <PanelPage title={words.settings}>
      <nav className="section-tabs" aria-label={words.settingsSections}>
        {sections.map(([id, title]) => (
          <button
            key={id}
            type="button"
            className="chip-button"
            onClick={() => (hash === id ? showSection(id) : navigate("settings", { hash: id, replace: true }))}
          >
            {title}
          </button>
        ))}
      </nav>
      {sections.map(([id, title, content]) => (
        <section key={id} className="card" aria-labelledby={`${id}-title`}>
          <h2 id={`${id}-title`} className="section-title">
            {title}
          </h2>
          {content}
        </section>
      ))}
    </PanelPage>
  );
}

/** Scrolls to a section. Those above it may still be loading. */
function showSection(id: string): void {
  if (id !== "") document.getElementById(`${id}-title`)?.scrollIntoView({ block: "start" });
}
