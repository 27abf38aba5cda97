/** What an owner can still set up, below the composer of the start page: a model, a platform. Each can be skipped. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useRef, useState, type ReactNode } from "react";
import { attempt } from "../../api/attempt";
import { setStepSkipped } from "../../api/calls";
import { isTouch } from "../../composer/sendKey";
import { getPlatformName } from "../../format/platforms";
import { focusContent } from "../../layout/focus";
import { navigate } from "../../lib/router";
import { useAccount } from "../../live/context";
import { ErrorBoundary, LoadError } from "../../ui/ErrorBoundary";
import { setupWords } from "../../words/setup";
import { useSettings } from "../forms/settingsApi";
import { listPlatforms } from "../shared/calls";
import "../forms/forms.css";

const ProviderForm = lazy(async () => ({ default: (await import("../forms/ProviderForm")).ProviderForm }));

type Step = "model" | "platform";
const PLACEHOLDERS = new Set(["demo", "local"]);
const PLATFORMS = ["telegram", "whatsapp", "whatsapp-web", "signal", "discord", "slack", "matrix", "email"];

export default function SetupSteps() {
  const { me, refetch } = useAccount();
  const accounts = useQuery({ queryKey: ["platform-accounts"], queryFn: listPlatforms }).data?.accounts;
  const [isFormShown, setFormShown] = useState(false);
  const title = useRef<HTMLHeadingElement>(null);
  if (accounts === undefined) return null;
  const isModelDone = !PLACEHOLDERS.has(me.agent.model);
  const isPlatformDone = accounts.some((account) => account.configured);
  const isOver = (step: Step, isDone: boolean) => isDone || me.skipped_steps.includes(step);
  if (isOver("model", isModelDone) && isOver("platform", isPlatformDone)) return null;
  const setSkipped = async (step: Step, skipped: boolean) => {
    if (!(await attempt(() => setStepSkipped(step, skipped)))) return;
    setFormShown(step === "model" && !skipped);
    await refetch();
    requestAnimationFrame(() => document.activeElement === document.body && !isTouch() && focusContent()); // the last step is gone
  };
  const closeForm = () => {
    setFormShown(false);
    title.current?.focus(); // the focus was in the form
  };
  const steps: [Step, string, boolean, ReactNode][] = [
    [
      "model",
      setupWords.stepModel,
      isModelDone,
      <>
        <p>{setupWords.placeholder}</p>
        {isFormShown ? (
          <ErrorBoundary fallback={<LoadError />}>
            <Suspense>
              <NewProvider onDone={closeForm} />
            </Suspense>
          </ErrorBoundary>
        ) : (
          <button type="button" className="button primary" onClick={() => setFormShown(true)}>
            {setupWords.addProvider}
          </button>
        )}
      </>,
    ],
    [
      "platform",
      setupWords.stepPlatform,
      isPlatformDone,
      <>
        <p>{setupWords.stepPlatformText}</p>
        <div className="connect-list">
          {PLATFORMS.map((platform) => (
            <button key={platform} type="button" className="chip-button" onClick={() => navigate("platforms", { hash: platform })}>
              {getPlatformName(platform)}
            </button>
          ))}
        </div>
      </>,
    ],
  ];
  return (
    <section className="about setup-steps" aria-labelledby="setup-title">
      <h2 id="setup-title" ref={title} tabIndex={-1}>{setupWords.setupTitle}</h2>
      <p>{setupWords.setupIntro}</p>
      <ol>
        {steps.map(([step, title, isDone, content]) => {
          const isSkipped = !isDone && me.skipped_steps.includes(step);
          return (
            <li key={step} className="setup-step">
              <div>
                <h3>{title}</h3>
                {isDone && <span className="tag">{setupWords.stepDone}</span>}
                {isSkipped && <span className="tag">{setupWords.stepSkipped}</span>}
                {!isDone && (
                  <button
                    type="button"
                    className="text-button"
                    aria-label={isSkipped ? `${setupWords.resumeStep}: ${title}` : setupWords.skipStep(title)}
                    onClick={() => void setSkipped(step, !isSkipped)}
                  >
                    {isSkipped ? setupWords.resumeStep : setupWords.skip}
                  </button>
                )}
              </div>
              {!isDone && !isSkipped && content}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** The form for a provider. It needs all settings, which are large: they are not loaded before a person wants the form. */
function NewProvider({ onDone }: { onDone: () => void }) {
  const settings = useSettings().data;
  return settings === undefined ? null : <ProviderForm settings={settings} takesFocus onDone={onDone} />;
}
