/** The person's accounts on chat platforms: linking them, with the confirmation of both sides, and unlinking them. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { getPlatformName } from "../../format/platforms";
import { confirm } from "../../ui/ConfirmDialog";
import { CopyButton } from "../../ui/CopyButton";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { linkWords } from "../../words/links";
import type { LinkResult, PendingLink } from "../shared/calls";
import * as calls from "../shared/calls";
import { QueryResult } from "../shared/QueryResult";
import { getRoleName } from "../shared/roleNames";
import { ItemList } from "./ItemList";

const LINKS_KEY = ["links"];
const POLL_INTERVAL_MS = 5000;
const MAX_CODE_CHARS = 40;

export function LinkedAccounts() {
  const queryClient = useQueryClient();
  const [code, setCode] = useState<string | null>(null);
  const isWaiting = (pending: PendingLink | null | undefined) => code !== null || (pending ?? null) !== null;
  const query = useQuery({
    queryKey: LINKS_KEY,
    queryFn: calls.listLinks,
    refetchInterval: ({ state }) => (isWaiting(state.data?.pending) ? POLL_INTERVAL_MS : false),
  });
  const refresh = () => queryClient.invalidateQueries({ queryKey: LINKS_KEY });
  const handleResult = async (result: LinkResult) => {
    if (result.is_linked) setCode(null);
    if (result.problem !== null) toast(linkWords.linkProblems[result.problem] ?? linkWords.linkFailed);
    else if (result.is_linked) toast(linkWords.linkDone);
    await refresh();
  };
  return (
    <>
      <p className="hint">{linkWords.linksIntro}</p>
      <QueryResult query={query}>
        {({ accounts, pending }) => (
          <>
            <ItemList
              label={words.links}
              emptyText={linkWords.linksEmpty}
              items={accounts.map((account) => ({
                id: `${account.platform}:${account.account}`,
                name: getPlatformName(account.platform),
                facts: account.account,
                action: (
                  <button type="button" className="button" aria-label={words.unlinkAccount(getPlatformName(account.platform))} onClick={() => void unlink(account, refresh)}>
                    {words.unlinkAction}
                  </button>
                ),
              }))}
            />
            {pending !== null ? (
              <LinkQuestion link={pending} onResult={handleResult} onCanceled={() => setCode(null)} />
            ) : (
              <CodeForms code={code} onCode={setCode} onResult={handleResult} />
            )}
          </>
        )}
      </QueryResult>
    </>
  );
}

async function unlink(account: calls.ChatAccount, refresh: () => Promise<void>): Promise<void> {
  const platform = getPlatformName(account.platform);
  const question = { title: linkWords.unlinkMineTitle(platform), text: words.unlinkText(account.account), action: words.unlinkAction };
  if ((await confirm(question)) && (await attempt(() => calls.unlinkMyAccount(account)))) await refresh();
}

interface QuestionProps {
  link: PendingLink;
  onResult: (result: LinkResult) => Promise<void>;
  onCanceled: () => void;
}

/** What both sides share, and the two answers. */
function LinkQuestion({ link, onResult, onCanceled }: QuestionProps) {
  const runOnce = useSingleFlight();
  const place = link.other_account === null ? link.other_platform : `${link.other_platform}, ${link.other_account}`;
  const name = link.other_name;
  const answer = (choice: "confirm" | "cancel") =>
    runOnce(async () => {
      await attempt(async () => onResult(await calls.answerLink(choice)));
      if (choice === "cancel") {
        onCanceled();
        toast(linkWords.linkCanceled);
      }
    });
  return (
    <div className="link-question" role="group" aria-labelledby="link-question-title">
      <h3 id="link-question-title" dir="auto">
        {linkWords.linkQuestion(name, place)}
      </h3>
      <p>
        {link.is_issuer && linkWords.linkNotYou} {linkWords.linkNotYet}
      </p>
      <ul>
        <li>{linkWords.linkShares(formatCounts(link.shares), name)}</li>
        <li>{link.gets === null ? linkWords.linkGetsUnknown(name) : linkWords.linkGets(formatCounts(link.gets), name)}</li>
        <li>{link.role === null ? linkWords.linkRoleUnknown : linkWords.linkRole(getRoleName(link.role))}</li>
        <li>{linkWords.linkUndo(link.kept_by)}</li>
      </ul>
      {link.is_confirmed && <p role="status">{linkWords.linkWaiting(name)}</p>}
      <div className="section-actions">
        {!link.is_confirmed && (
          <button type="button" className="button" onClick={() => void answer("confirm")}>
            {linkWords.linkConfirm}
          </button>
        )}
        <button type="button" className="button" onClick={() => void answer("cancel")}>
          {linkWords.linkCancel}
        </button>
      </div>
    </div>
  );
}

export function formatCounts(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).flatMap(([kind, count]) => (count > 0 ? [linkWords.linkCounts[kind]?.(count) ?? ""] : []));
  return parts.filter(Boolean).join(", ") || linkWords.linkNothing;
}

interface FormsProps {
  code: string | null;
  onCode: (code: string) => void;
  onResult: (result: LinkResult) => Promise<void>;
}

/** Creating a code for another account, and using the code of another one. */
function CodeForms({ code, onCode, onResult }: FormsProps) {
  const [typed, setTyped] = useState("");
  const [createOnce, sendOnce] = [useSingleFlight(), useSingleFlight()]; // a code can be created while another one is checked
  const create = async () => {
    await attempt(async () => onCode((await calls.createLinkCode()).code));
  };
  const send = async () => {
    await attempt(async () => {
      await onResult(await calls.sendLinkCode(typed));
      setTyped("");
    });
  };
  return (
    <>
      {code !== null && (
        <p role="status">
          {linkWords.linkCodeText(code)} <CopyButton text={`/link ${code}`} />
        </p>
      )}
      <div className="section-actions">
        <button type="button" className="button" onClick={() => void createOnce(create)}>
          {linkWords.linkNewCode}
        </button>
      </div>
      <form
        className="setting-form"
        onSubmit={(event) => {
          event.preventDefault();
          void sendOnce(send);
        }}
      >
        <label className="field">
          {linkWords.linkHaveCode}
          <input value={typed} required maxLength={MAX_CODE_CHARS} autoComplete="off" onChange={(event) => setTyped(event.target.value)} />
        </label>
        <button type="submit" className="button" disabled={typed.trim() === ""}>
          {linkWords.linkUseCode}
        </button>
      </form>
    </>
  );
}
