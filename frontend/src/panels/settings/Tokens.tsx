/** Tokens for programs that speak in somebody's name. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../conversation/actions";
import { ago } from "../../lib/time";
import { confirm } from "../../ui/confirm";
import { Dialog } from "../../ui/Dialog";
import { words } from "../../words";
import * as calls from "../calls";
import type { NewToken, Token } from "../calls";
import { Loaded } from "../parts/Loaded";
import { onDay } from "../parts/days";
import { Secret } from "../parts/Secret";
import { Listed } from "./Listed";
import { TokenDialog } from "./TokenDialog";

const TOKENS = ["tokens"];

export function Tokens({ isOwner }: { isOwner: boolean }) {
  const client = useQueryClient();
  const query = useQuery({ queryKey: TOKENS, queryFn: calls.tokens });
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<NewToken | null>(null);
  const again = () => client.invalidateQueries({ queryKey: TOKENS });
  const revoke = async (token: Token) => {
    const question = { title: words.revokeTokenTitle(token.name), text: words.revokeTokenText, action: words.revoke };
    if (!(await confirm(question))) return;
    await attempt(() => calls.revokeToken(token.id));
    await again();
  };
  return (
    <>
      <p className="hint">{words.tokensIntro}</p>
      <Loaded query={query}>
        {({ tokens }) => (
          <Listed
            label={words.tokens}
            none={words.tokensNone}
            things={tokens.map((token) => ({
              id: token.id,
              name: token.name,
              facts: factsOf(token),
              action: (
                <button type="button" className="button" aria-label={words.revokeToken(token.name)} onClick={() => void revoke(token)}>
                  {words.revoke}
                </button>
              ),
            }))}
          />
        )}
      </Loaded>
      <div className="part-actions">
        <button type="button" className="button" onClick={() => setMaking(true)}>
          {words.newToken}
        </button>
      </div>
      {isMaking && (
        <TokenDialog
          isOwner={isOwner}
          onClose={() => setMaking(false)}
          onMade={(token) => {
            setMaking(false);
            setMade(token);
            void again();
          }}
        />
      )}
      {made !== null && (
        <Dialog label={words.tokenMade} onClose={() => setMade(null)}>
          <h2>{words.tokenMade}</h2>
          <Secret label={made.token.name} text={made.secret} />
          <div className="dialog-actions">
            <button type="button" className="button primary" onClick={() => setMade(null)}>
              {words.done}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function factsOf(token: Token): string {
  return [
    token.scopes.map((scope) => words.scopeNames[scope] ?? scope).join(", "),
    token.used_at === null ? words.unused : words.lastUsed(ago(token.used_at)),
    ...(token.expires_at === null ? [] : [words.expires(onDay(token.expires_at))]),
  ].join(" · ");
}
