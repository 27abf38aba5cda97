/** The passkeys of the signed-in person. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { addPasskey, getNewPasskeyOptions } from "../../api/accountCalls";
import { formatDate } from "../../format/days";
import { formatRecent } from "../../format/time";
import { canCreatePasskeys, createPasskey } from "../../lib/passkeyCreation";
import { confirm } from "../../ui/ConfirmDialog";
import { TrashIcon } from "../../ui/icons";
import { NameDialog } from "../../ui/NameDialog";
import { toast } from "../../ui/toasts";
import { words } from "../../words";
import type { Passkey } from "../shared/calls";
import * as calls from "../shared/calls";
import { QueryResult } from "../shared/QueryResult";
import { ItemList } from "./ItemList";

const PASSKEYS_KEY = ["passkeys"];

export function Passkeys() {
  const queryClient = useQueryClient();
  const query = useQuery({ queryKey: PASSKEYS_KEY, queryFn: calls.listPasskeys });
  const [isAdding, setAdding] = useState(false);
  const refresh = () => queryClient.invalidateQueries({ queryKey: PASSKEYS_KEY });
  const remove = async (passkey: Passkey) => {
    const question = { title: words.removePasskeyTitle(passkey.name), text: words.removePasskeyText, action: words.removePerson };
    if (!(await confirm(question))) return;
    await attempt(() => calls.removePasskey(passkey.id));
    await refresh();
  };
  return (
    <>
      <p className="hint">{words.passkeysIntro}</p>
      <QueryResult query={query}>
        {({ passkeys }) => (
          <ItemList
            label={words.passkeys}
            emptyText={words.passkeysEmpty}
            items={passkeys.map((passkey) => ({
              id: passkey.id,
              name: passkey.name,
              facts: describePasskey(passkey),
              action: (
                <button
                  type="button"
                  className="icon-button"
                  title={words.removePasskey(passkey.name)}
                  aria-label={words.removePasskey(passkey.name)}
                  onClick={() => void remove(passkey)}
                >
                  <TrashIcon />
                </button>
              ),
            }))}
          />
        )}
      </QueryResult>
      {canCreatePasskeys() ? (
        <div className="section-actions">
          <button type="button" className="button" onClick={() => setAdding(true)}>
            {words.addPasskey}
          </button>
        </div>
      ) : (
        <p className="hint">{words.passkeysUnsupported}</p>
      )}
      {isAdding && (
        <NewPasskeyDialog
          onClose={() => setAdding(false)}
          onCreated={() => {
            setAdding(false);
            void refresh();
          }}
        />
      )}
    </>
  );
}

function NewPasskeyDialog({ onClose, onCreated }: { onClose: () => void; onCreated: () => void }) {
  const create = (name: string) =>
    attempt(async () => {
      const credential = await createPasskey(await getNewPasskeyOptions());
      if (credential === null) {
        toast(words.passkeyNotCreated);
        return;
      }
      await addPasskey(name, credential);
      toast(words.passkeyAdded);
      onCreated();
    });
  return (
    <NameDialog title={words.addPasskey} label={words.passkeyName} action={words.addPasskey} onClose={onClose} onDone={create} />
  );
}

function describePasskey(passkey: Passkey): string {
  const lastUse = passkey.last_used_at === null ? words.neverUsed : words.lastUsed(formatRecent(passkey.last_used_at));
  return [words.passkeyFor(passkey.site), words.since(formatDate(passkey.created_at)), lastUse].join(" · ");
}
