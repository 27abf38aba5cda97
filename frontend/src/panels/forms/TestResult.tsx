/** How the test of a provider went, and what to check if it failed. */
import { describeFailure } from "../../format/errors";
import { setupWords } from "../../words/setup";
import type { ProviderTest } from "./settingsApi";

const ADDRESS_FAULTS: ReadonlySet<unknown> = new Set(["cannot_connect", "invalid_response"]);

interface Props {
  test: ProviderTest;
  hasOwnAddress: boolean; // a person has entered its address
}

export function TestResult({ test, hasOwnAddress }: Props) {
  if (test.ok) return <p>{setupWords.testOk(test.model, test.seconds.toFixed(1))}</p>;
  const { code, status } = test.facts;
  const isNotFound = status === 404 && code === "provider_unavailable";
  const text = isNotFound ? setupWords.addressNotFound : (describeFailure({ reason: test.error, ...test.facts }) ?? "");
  const isAddressFault = hasOwnAddress && (isNotFound || ADDRESS_FAULTS.has(code));
  const isNew = test.detail !== null && !text.includes(test.detail);
  return (
    <>
      <p dir="auto">
        {setupWords.testFailed} {text} {isAddressFault && setupWords.checkAddress} {code === "no_models" && setupWords.enterModelLater}
      </p>
      {isNew && (
        <p dir="auto">
          {code === "cannot_connect" ? setupWords.testDetail : setupWords.providerSaid} <q>{test.detail}</q>
        </p>
      )}
    </>
  );
}
