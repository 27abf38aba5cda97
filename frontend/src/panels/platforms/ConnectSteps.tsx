/** How to connect a platform: the steps with links, and what has to be pasted on the other side. */
import { baseUrl } from "../../lib/baseUrl";
import { CopyButton } from "../../ui/CopyButton";
import { setupWords } from "../../words/setup";
import type { PlatformForm } from "../forms/settingsApi";
import { SLACK_MANIFEST } from "./slackManifest";
import { findStepLinks } from "./stepLinks";

interface Props {
  form: PlatformForm;
  publicUrl: string | null; // the address of the server that its owner has set
}

export function ConnectSteps({ form, publicUrl }: Props) {
  const address = new URL(`hooks/${form.platform}`, publicUrl === null ? baseUrl : `${publicUrl.replace(/\/+$/, "")}/`).href;
  return (
    <>
      <h3>{setupWords.steps}</h3>
      <ol className="steps-list">
        {form.steps.map((step) => (
          <li key={step}>
            {findStepLinks(step).map((part, index) =>
              part.url === null ? (
                part.text
              ) : (
                <a key={index} href={part.url} target="_blank" rel="noreferrer noopener">
                  {part.text}
                </a>
              ),
            )}
          </li>
        ))}
      </ol>
      {form.needs_public_url && (
        <div className="to-paste">
          <b>{setupWords.webhookAddress}</b> <CopyButton text={address} label={setupWords.copyOf(setupWords.webhookAddress)} />
          <code dir="ltr">{address}</code>
          <p className="hint">{setupWords.webhookAddressHint}</p>
        </div>
      )}
      {form.platform === "slack" && (
        <div className="to-paste">
          <b>{setupWords.appManifest}</b> <CopyButton text={SLACK_MANIFEST} label={setupWords.copyOf(setupWords.appManifest)} />
          <pre tabIndex={0} aria-label={setupWords.appManifest} dir="ltr">
            {SLACK_MANIFEST}
          </pre>
        </div>
      )}
    </>
  );
}
