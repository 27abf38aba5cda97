/** Strangers who ask for access: the owner approves or denies each of them. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { getPlatformName } from "../../format/platforms";
import { formatDateTime, formatRecent } from "../../format/time";
import { focusContent } from "../../layout/focus";
import { ChevronDownIcon, LinkIcon, PeopleIcon, UserIcon } from "../../ui/icons";
import { Menu, MenuItem } from "../../ui/Menu";
import { PlatformBadge } from "../../ui/PlatformBadge";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { setupWords } from "../../words/setup";
import type { AccessRequest, Grant } from "../shared/calls";
import * as calls from "../shared/calls";

const REQUESTS_KEY = ["access-requests"];
const REFRESH_INTERVAL_MS = 5_000; // while the panel is open

interface Props {
  platform?: string; // only those of this one
  onApprove: () => Promise<unknown>;
}

export function AccessRequests({ platform, onApprove }: Props) {
  const queryClient = useQueryClient();
  const query = useQuery({ queryKey: REQUESTS_KEY, queryFn: calls.listAccessRequests, refetchInterval: REFRESH_INTERVAL_MS });
  const requests = (query.data?.requests ?? []).filter((each) => platform === undefined || each.platform === platform);
  if (requests.length === 0) return null;
  const refresh = async () => {
    await Promise.all([queryClient.invalidateQueries({ queryKey: REQUESTS_KEY }), onApprove()]);
    requestAnimationFrame(moveFocus);
  };
  return (
    <section className="access-requests" aria-labelledby="access-requests">
      <h2 id="access-requests" className="access-heading">
        {words.accessRequests}
      </h2>
      <p className="panel-intro">{words.accessRequestsIntro}</p>
      <CodeCheck requests={requests} />
      <ul className="card rows-card">
        {requests.map((request) => (
          <RequestRow key={request.id} request={request} onChange={refresh} />
        ))}
      </ul>
    </section>
  );
}

/** After an answer its row is gone, and the focus with it: the next request is there, or the page. */
function moveFocus(): void {
  if (document.activeElement !== document.body) return;
  const next = document.querySelector<HTMLElement>(".access-requests li .button");
  if (next === null) focusContent();
  else next.focus();
}

/** Says whose code it is that a person has given the owner. */
function CodeCheck({ requests }: { requests: readonly AccessRequest[] }) {
  const [code, setCode] = useState("");
  const [result, setResult] = useState("");
  const runOnce = useSingleFlight();
  const check = () =>
    runOnce(() =>
      attempt(async () => {
        const { facts, outcome, reply } = await calls.checkPairingCode(code.trim());
        const found = requests.find(({ id }) => id === facts.id);
        if (found !== undefined) setResult(setupWords.codeIsOf(getName(found), getPlatformName(found.platform), found.account));
        else setResult(outcome === "rejected" ? setupWords.codeMalformed : (reply ?? ""));
      }),
    );
  return (
    <form
      className="code-check"
      onSubmit={(event) => {
        event.preventDefault();
        void check();
      }}
    >
      <label className="field">
        {setupWords.codeCheck}
        <input
          value={code}
          required
          maxLength={40}
          placeholder="ABCD-EFGH"
          spellCheck={false}
          autoComplete="off"
          autoCapitalize="characters"
          onChange={(event) => {
            setCode(event.target.value);
            setResult("");
          }}
        />
      </label>
      <button type="submit" className="button">
        {setupWords.checkCode}
      </button>
      <p role="status" dir="auto">
        {result}
      </p>
    </form>
  );
}

const getName = ({ name, account }: AccessRequest) => (name === "" ? account : name);

function RequestRow({ request, onChange }: { request: AccessRequest; onChange: () => Promise<unknown> }) {
  const runOnce = useSingleFlight();
  const name = getName(request);
  const approve = (grant: Grant) =>
    void runOnce(async () => {
      if (await attempt(() => calls.approveAccessRequest(request.id, grant))) toast(words.accessApproved(name));
      await onChange();
    });
  const deny = () =>
    void runOnce(async () => {
      if (await attempt(() => calls.denyAccessRequest(request.id))) toast(words.accessDenied(name));
      await onChange();
    });
  return (
    <li className="card-row">
      <PlatformBadge platform={request.platform} />
      <div className="card-row-text">
        <b dir="auto">{name}</b>
        <small title={formatDateTime(request.created_at)}>
          {getPlatformName(request.platform)} · <code>{request.account}</code> · {formatRecent(request.created_at)}
        </small>
      </div>
      <button type="button" className="button" aria-label={words.denyAccessFor(name)} onClick={deny}>
        {words.denyAccess}
      </button>
      <Menu
        button={
          <button type="button" className="button primary" aria-label={words.approveAccessFor(name)}>
            {words.approveAccess}
            <ChevronDownIcon />
          </button>
        }
      >
        {!request.is_channel && (
          <MenuItem icon={<PeopleIcon />} onSelect={() => approve("member")}>
            <span className="menu-text">
              {words.approveAsMember}
              <small>{words.approveAsMemberHint}</small>
            </span>
          </MenuItem>
        )}
        <MenuItem icon={<UserIcon />} onSelect={() => approve("guest")}>
          <span className="menu-text">
            {words.approveAsGuest}
            <small>{request.is_channel ? words.approveChannelHint : words.approveAsGuestHint}</small>
          </span>
        </MenuItem>
        {!request.is_channel && (
          <MenuItem icon={<LinkIcon />} onSelect={() => approve("me")}>
            <span className="menu-text">
              {words.approveAsMe}
              <small>{words.approveAsMeHint}</small>
            </span>
          </MenuItem>
        )}
      </Menu>
    </li>
  );
}
