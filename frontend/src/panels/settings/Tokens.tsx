/** The API tokens of the signed-in person, for programs that act in their name. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { formatDate } from "../../format/days";
import { formatRecent } from "../../format/time";
import { confirm } from "../../ui/ConfirmDialog";
import { Dialog } from "../../ui/Dialog";
import { words } from "../../words";
import type { NewToken, Token } from "../shared/calls";
import * as calls from "../shared/calls";
import { QueryResult } from "../shared/QueryResult";
import { SecretField } from "../shared/SecretField";
import { ItemList } from "./ItemList";
import { TokenDialog } from "./TokenDialog";

const TOKENS_KEY = ["tokens"];

export function Tokens({ isOwner }: { isOwner: boolean }) {
  const queryClient = useQueryClient();
  const query = useQuery({ queryKey: TOKENS_KEY, queryFn: calls.listTokens });
  const [isCreating, setCreating] = useState(false);
  const [newToken, setNewToken] = useState<NewToken | null>(null);
  const refresh = () => queryClient.invalidateQueries({ queryKey: TOKENS_KEY });
  const revoke = async (token: Token) => {
    const question = { title: words.revokeTokenTitle(token.name), text: words.revokeTokenText, action: words.revoke };
    if (!(await confirm(question))) return;
    await attempt(() => calls.revokeToken(token.id));
    await refresh();
  };
  return (
    <>
      <p className="hint">{words.tokensIntro}</p>
      <QueryResult query={query}>
        {({ tokens }) => (
          <ItemList
            label={words.tokens}
            emptyText={words.tokensEmpty}
            items={tokens.map((token) => ({
              id: token.id,
              name: token.name,
              facts: describeToken(token),
              action: (
                <button type="button" className="button" aria-label={words.revokeToken(token.name)} onClick={() => void revoke(token)}>
                  {words.revoke}
                </button>
              ),
            }))}
          />
        )}
      </QueryResult>
      <div className="section-actions">
        <button type="button" className="button" onClick={() => setCreating(true)}>
          {words.newToken}
        </button>
      </div>
      {isCreating && (
        <TokenDialog
          isOwner={isOwner}
          onClose={() => setCreating(false)}
          onCreated={(token) => {
            setCreating(false);
            setNewToken(token);
            void refresh();
          }}
        />
      )}
      {newToken !== null && (
        <Dialog label={words.tokenCreated} onClose={() => setNewToken(null)}>
          <h2>{words.tokenCreated}</h2>
          <SecretField label={newToken.token.name} text={newToken.secret} />
          <div className="dialog-actions">
            <button type="button" className="button primary" onClick={() => setNewToken(null)}>
              {words.done}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function describeToken(token: Token): string {
  return [
    token.scopes.map((scope) => words.scopeNames[scope] ?? scope).join(", "),
    token.last_used_at === null ? words.neverUsed : words.lastUsed(formatRecent(token.last_used_at)),
    ...(token.expires_at === null ? [] : [words.expires(formatDate(token.expires_at))]),
  ].join(" · ");
}
