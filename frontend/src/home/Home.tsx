/** The start page: a composer and, until it is hidden, what this server is. */
import { useEffect, useState, type ReactNode } from "react";
import { describeAgent } from "../agent/description";
import { ModelSetupHint } from "../agent/ModelSetupHint";
import { NewModelMenu } from "../agent/NewModelMenu";
import { ProfileMenu } from "../agent/ProfileMenu";
import { NO_CHOICES, pickChoices } from "../agent/profiles";
import { Composer } from "../composer/Composer";
import { PendingMessage } from "../composer/PendingMessage";
import { useFileDrop } from "../composer/useFileDrop";
import { focusComposer } from "../layout/focus";
import { SidebarButtons } from "../layout/SidebarButtons";
import { useDocumentTitle } from "../lib/documentTitle";
import { navigate } from "../lib/router";
import { storage } from "../lib/storage";
import { useStore } from "../lib/store";
import { useLiveClient, useMe } from "../live/context";
import { NEW_DRAFT } from "../outbox/composerDrafts";
import { suggestText } from "../outbox/textSuggestions";
import { selectedView } from "../sessions/selectedView";
import { words } from "../words";
import "./Home.css";

/** `setup` is what an owner can still set up; the shell passes it in. */
export function Home({ setup }: { setup: ReactNode }) {
  const client = useLiveClient();
  const me = useMe();
  const entries = useStore(client.outbox.entries);
  const isOffline = useStore(client.connection, (connection) => connection !== "live");
  const { isDragging, handlers } = useFileDrop((files) => client.composerDrafts.addFiles(NEW_DRAFT, files));
  const [sentKey, setSentKey] = useState<string | null>(null); // of the message that was sent here last
  const [choices, setChoices] = useState(NO_CHOICES); // for the next conversation
  const [model, setModel] = useState<string | null>(null);
  const [isAboutShown, setAboutShown] = useState(storage.get("about") !== "hidden");
  const sessionId = entries.find((entry) => entry.key === sentKey)?.session ?? null;
  const pending = entries.filter((entry) => entry.session === null || (entry.rejection !== null && entry.key === sentKey));

  useDocumentTitle("");

  useEffect(() => {
    if (sessionId !== null) navigate(sessionId, { replace: false });
  }, [sessionId]);

  const showAbout = (isShown: boolean) => {
    storage.set("about", isShown ? null : "hidden");
    setAboutShown(isShown);
  };

  const name = me.person.name;
  return (
    <section className="home" {...handlers}>
      <header className="bar plain">
        <SidebarButtons />
      </header>
      <div className="home-content">
        <h1 dir="auto">{name === "" ? words.greetingWithoutName : words.greeting(name)}</h1>
        <p className="intro">{words.homeIntro}</p>
        {pending.map((entry) => (
          <PendingMessage key={entry.key} entry={entry} draftId={NEW_DRAFT} isOffline={isOffline} />
        ))}
        <Composer
          draftId={NEW_DRAFT}
          placeholder={words.firstMessagePlaceholder}
          isRunning={false}
          policy={null}
          onSend={(message) => {
            const { project } = selectedView.value;
            const newSession = { ...(project !== null && { project }), ...pickChoices(choices), ...(model !== null && { model }) };
            setSentKey(client.sendMessage({ ...message, session: null, newSession }).key);
          }}
        />
        {me.person.role !== "guest" && (
          <div className="home-choices">
            <ProfileMenu choices={choices} onChange={(changes) => setChoices({ ...choices, ...changes })} isLabeled />
            <NewModelMenu profile={choices.profile} model={model} onChange={setModel} />
          </div>
        )}
        <div className="examples">
          {me.agent.model === "demo" &&
            words.examples.map((example) => (
              <button
                key={example}
                type="button"
                className="chip-button"
                onClick={() => {
                  suggestText(NEW_DRAFT, example);
                  focusComposer();
                }}
              >
                {example}
              </button>
            ))}
        </div>
        {setup}
        {isAboutShown ? (
          <AboutServer onHide={() => showAbout(false)} />
        ) : (
          <button type="button" className="text-button about-show" onClick={() => showAbout(true)}>
            {words.aboutShow}
          </button>
        )}
      </div>
      {isDragging && <div className="drop-hint">{words.dropFiles}</div>}
    </section>
  );
}

function AboutServer({ onHide }: { onHide: () => void }) {
  const me = useMe();
  return (
    <section className="about" aria-labelledby="about-title">
      <div className="section-head">
        <h2 id="about-title">{words.aboutTitle}</h2>
        <button type="button" className="text-button" onClick={onHide}>
          {words.aboutHide}
        </button>
      </div>
      <ModelSetupHint me={me} />
      <p>{words.aboutServer(me.version)}</p>
      <div className="about-columns">
        <div>
          <h3>{words.aboutAgent}</h3>
          <p dir="auto">{describeAgent(me)}</p>
        </div>
        <div>
          <h3>{words.aboutPlatforms}</h3>
          {me.person.role === "owner" && (
            <>
              <p>{words.aboutTerminal}</p>
              <pre dir="ltr">{me.command}</pre>
            </>
          )}
          <p>{words.aboutPrograms}</p>
        </div>
      </div>
    </section>
  );
}
