/** The start page: a place to write, and, for whoever comes for the first time, what this is. */
import { useEffect, useState } from "react";
import { Composer } from "../conversation/Composer";
import { NEW, offerText } from "../conversation/composing";
import { Pending } from "../conversation/Pending";
import { useDrop } from "../conversation/useDrop";
import { keep, recall } from "../lib/keep";
import { go } from "../lib/router";
import { useStore } from "../lib/store";
import { useTitle } from "../lib/title";
import { useCenter, useMe } from "../live/context";
import type { Entry } from "../outbox/entries";
import { MenuButton } from "../shell/MenuButton";
import { focusComposer } from "../shell/Shortcuts";
import { chosenView } from "../sidebar/chosen";
import { titleFrom } from "../sidebar/naming";
import { words } from "../words";
import { ModelAdvice } from "./ModelAdvice";
import { whoAnswers } from "./whoAnswers";

const every = (entries: readonly Entry[]) => entries;

export function Home() {
  const center = useCenter();
  const me = useMe();
  const entries = useStore(center.outbox.entries, every);
  const isOffline = useStore(center.connection, (connection) => connection !== "live");
  const { isOver, handlers } = useDrop((files) => center.unfinished.add(NEW, files));
  const [begun, setBegun] = useState<string | null>(null);
  const [isAboutShown, setAboutShown] = useState(recall("about") !== "hidden");
  const session = entries.find((entry) => entry.key === begun)?.session ?? null;
  const waiting = entries.filter((entry) => entry.session === null || (entry.refused !== null && entry.key === begun));

  useTitle("");

  useEffect(() => {
    if (session !== null) go(session, { replace: false });
  }, [session]);

  const showAbout = (isShown: boolean) => {
    keep("about", isShown ? null : "hidden");
    setAboutShown(isShown);
  };

  const name = me.person.name;
  return (
    <section className="home" {...handlers}>
      <header className="bar plain">
        <MenuButton />
      </header>
      <div className="home-middle">
        <h1 dir="auto">{name === "" ? words.greetingNobody : words.greeting(name)}</h1>
        <p className="intro">{words.startIntro}</p>
        {waiting.map((entry) => (
          <Pending key={entry.key} entry={entry} place={NEW} isOffline={isOffline} />
        ))}
        <Composer
          place={NEW}
          placeholder={words.writeFirst}
          running={false}
          policy={null}
          onSend={(said) => {
            const title = titleFrom(said.text);
            const { project } = chosenView.value;
            const begin = { ...(title !== undefined && { title }), ...(project !== null && { project }) };
            setBegun(center.say({ ...said, session: null, begin }).key);
          }}
        />
        <div className="examples">
          {me.agent.model === "demo" &&
            words.examples.map((example) => (
              <button
                key={example}
                type="button"
                className="chip-button"
                onClick={() => {
                  offerText(NEW, example);
                  focusComposer();
                }}
              >
                {example}
              </button>
            ))}
        </div>
        {isAboutShown ? (
          <About onHide={() => showAbout(false)} />
        ) : (
          <button type="button" className="text-button about-show" onClick={() => showAbout(true)}>
            {words.aboutShow}
          </button>
        )}
      </div>
      {isOver && <div className="drop-sign">{words.dropHere}</div>}
    </section>
  );
}

function About({ onHide }: { onHide: () => void }) {
  const me = useMe();
  return (
    <section className="about" aria-labelledby="about-title">
      <div className="section-head">
        <h2 id="about-title">{words.aboutTitle}</h2>
        <button type="button" className="text-button" onClick={onHide}>
          {words.aboutHide}
        </button>
      </div>
      <p>{words.aboutServer(me.version)}</p>
      <div className="about-columns">
        <div>
          <h3>{words.aboutAgent}</h3>
          <p dir="auto">{whoAnswers(me)}</p>
          <ModelAdvice me={me} />
        </div>
        <div>
          <h3>{words.aboutPlatforms}</h3>
          {me.person.role === "owner" && (
            <>
              <p>{words.aboutTerminal}</p>
              <pre dir="ltr">palaver</pre>
            </>
          )}
          <p>{words.aboutPrograms}</p>
        </div>
      </div>
    </section>
  );
}
