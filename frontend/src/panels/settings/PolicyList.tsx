/** The policies for conversations on each platform and, for owners, where to change them. */
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/types";
import { ProfilePicture } from "../../agent/ProfilePicture";
import { getProfileTitle, useProfiles } from "../../agent/profiles";
import * as policyCalls from "../../api/calls";
import { getPlatformName } from "../../format/platforms";
import { Link } from "../../ui/Link";
import { PlatformBadge } from "../../ui/PlatformBadge";
import { words } from "../../words";
import type { ResetRule } from "../shared/calls";
import { QueryResult } from "../shared/QueryResult";
import { describeReset } from "./resetPolicy";

export function PolicyList({ isOwner }: { isOwner: boolean }) {
  const query = useQuery({ queryKey: ["policies"], queryFn: policyCalls.getPolicies });
  return (
    <>
      <p className="hint">
        {words.policiesIntro} {!isOwner && words.policiesOwner}
      </p>
      {isOwner && (
        <p className="policy-links">
          <Link to="server" section="conversations" className="text-button">
            {words.policyChangeReset}
          </Link>
          <Link to="server" section="turns" className="text-button">
            {words.policyChangeBusy}
          </Link>
        </p>
      )}
      <QueryResult query={query}>
        {(policies) => (
          <ul className="policies">
            {[...policies.platforms, policies.default].map((policy) => (
              <PolicyItem key={policy.platform} policy={policy} />
            ))}
            <ProfilePolicies />
          </ul>
        )}
      </QueryResult>
    </>
  );
}

function PolicyItem({ policy }: { policy: Schemas["PolicyJson"] }) {
  const { platform } = policy;
  const name = platform === null ? words.policyOtherPlatforms : getPlatformName(platform);
  return (
    <li>
      <h3>
        {platform !== null && <PlatformBadge platform={platform} />}
        {name}
      </h3>
      <dl className="facts">
        <dt>{words.policyReset}</dt>
        <dd>
          {policy.reset_rules.length === 0 && words.policyResetManual}
          {policy.reset_rules.map((rule) => (
            <p key={rule.setting_key}>
              {policy.reset_rules.length > 1 && <span className="chat-types">{describeChatTypes(rule)}</span>}
              {describeReset(rule)} <PolicySource configKey={rule.setting_key} isDefault={rule.is_default} />
            </p>
          ))}
        </dd>
        <dt>{words.policyBusy}</dt>
        <dd>
          {words.busyPolicies[policy.busy_policy]} <PolicySource configKey={policy.busy_setting_key} isDefault={policy.is_busy_default} />
        </dd>
      </dl>
    </li>
  );
}

/** The profiles whose conversations restart at other times, wherever conversations restart. */
function ProfilePolicies() {
  return useProfiles()?.profiles.map((profile) =>
    profile.session_reset === null ? null : (
      <li key={profile.name}>
        <h3>
          {profile.picture !== null && <ProfilePicture url={profile.picture} />}
          <span dir="auto">{words.policyProfile(getProfileTitle(profile))}</span>
        </h3>
        <dl className="facts">
          <dt>{words.policyReset}</dt>
          <dd>
            {describeReset(profile.session_reset)} <PolicySource configKey={`profiles.${profile.name}.session_reset`} isDefault={false} />
          </dd>
        </dl>
      </li>
    ),
  );
}

function PolicySource({ configKey, isDefault }: { configKey: string; isDefault: boolean }) {
  return (
    <small>
      {isDefault ? (
        words.policyDefault
      ) : (
        <>
          {words.policySetBy} <code dir="ltr">{configKey}</code>
        </>
      )}
    </small>
  );
}

function describeChatTypes({ chat_types }: ResetRule): string {
  return chat_types.map((type) => words.chatTypes[type] ?? type).join(", ");
}
