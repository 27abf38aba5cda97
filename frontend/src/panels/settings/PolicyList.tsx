/** What holds for conversations, place by place, and how whoever runs this gateway changes it. */
import { useQuery } from "@tanstack/react-query";
import * as api from "../../api/calls";
import { platformName } from "../../sidebar/naming";
import { CopyButton } from "../../ui/CopyButton";
import { PlatformBadge } from "../../ui/PlatformBadge";
import { words } from "../../words";
import type { Afresh, Policy } from "../calls";
import { Loaded } from "../parts/Loaded";
import { whenAfresh } from "./policy";

export function PolicyList({ isOwner }: { isOwner: boolean }) {
  const query = useQuery({ queryKey: ["policies"], queryFn: api.policies });
  return (
    <>
      <p className="hint">
        {words.policiesIntro} {!isOwner && words.policiesOwner}
      </p>
      <Loaded query={query}>
        {(policies) => (
          <ul className="policies">
            {[policies.default, ...policies.platforms].map((policy) => (
              <PolicyItem key={policy.platform} policy={policy} isOwner={isOwner} />
            ))}
          </ul>
        )}
      </Loaded>
    </>
  );
}

function PolicyItem({ policy, isOwner }: { policy: Policy; isOwner: boolean }) {
  const { platform } = policy;
  const name = platform === null ? words.policyEverywhere : platformName(platform);
  return (
    <li>
      <h3>
        {platform !== null && <PlatformBadge platform={platform} />}
        {name}
      </h3>
      <dl className="facts">
        <dt>{words.policyAfresh}</dt>
        <dd>
          {policy.afresh.length === 0 && words.policySideBySide}
          {policy.afresh.map((afresh) => (
            <p key={afresh.key}>
              {policy.afresh.length > 1 && <span className="kinds">{kindsOf(afresh)}</span>}
              {whenAfresh(afresh)} <Decided by={afresh.key} isDefault={afresh.is_default} />
            </p>
          ))}
        </dd>
        <dt>{words.policyBusy}</dt>
        <dd>
          {words.policyBusyKinds[policy.busy]} <Decided by={policy.busy_key} isDefault={policy.busy_is_default} />
        </dd>
      </dl>
      {isOwner && (
        <details className="as-table">
          <summary aria-label={`${words.policyChange}: ${name}`}>{words.policyChange}</summary>
          <p className="hint">
            {platform === null ? words.policyChangeEverywhere : words.policyChangeHere(name)} {words.policyOnce}
          </p>
          <div className="lines">
            <pre dir="ltr" tabIndex={0}>
              {policy.lines}
            </pre>
            <CopyButton text={policy.lines} label={words.policyCopy} />
          </div>
        </details>
      )}
    </li>
  );
}

function Decided({ by, isDefault }: { by: string; isDefault: boolean }) {
  return (
    <small>
      {isDefault ? (
        words.policyDefault
      ) : (
        <>
          {words.policyBy} <code dir="ltr">{by}</code>
        </>
      )}
    </small>
  );
}

function kindsOf({ chat_types }: Afresh): string {
  return chat_types.map((kind) => words.policyKinds[kind] ?? kind).join(", ");
}
