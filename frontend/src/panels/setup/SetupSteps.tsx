/** What an owner can still set up, below the composer of the start page: a model, a platform. Each can be skipped. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState, type ReactNode } from "react";
import { attempt } from "../../api/attempt";
import { setStepSkipped } from "../../api/calls";
import { getPlatformName } from "../../format/platforms";
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

export default function SetupSteps() {
  const { me, refetch } = useAccount();
  const settings = useSettings().data;
  const accounts = useQuery({ queryKey: ["platform-accounts"], queryFn: listPlatforms }).data?.accounts;
  const [isFormShown, setFormShown] = useState(false);
  if (settings === undefined || accounts === undefined) return null;
  const isModelDone = !PLACEHOLDERS.has(me.agent.model);
  const isPlatformDone = accounts.some((account) => account.configured);
  const isOver = (step: Step, isDone: boolean) => isDone || me.skipped_steps.includes(step);
  if (isOver("model", isModelDone) && isOver("platform", isPlatformDone)) return null;
  const setSkipped = async (step: Step, skipped: boolean) => {
    if (await attempt(() => setStepSkipped(step, skipped))) await refetch();
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
              <ProviderForm settings={settings} onDone={() => setFormShown(false)} />
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
          {settings.platforms
            .filter((form) => form.problem === null)
            .map((form) => (
              <button key={form.platform} type="button" className="chip-button" onClick={() => navigate("platforms", { hash: form.platform })}>
                {getPlatformName(form.platform)}
              </button>
            ))}
        </div>
      </>,
    ],
  ];
  return (
    <section className="about setup-steps" aria-labelledby="setup-title">
      <h2 id="setup-title">{setupWords.setupTitle}</h2>
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
