/** Somebody's passkeys. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../conversation/actions";
import { ago } from "../../lib/time";
import { confirm } from "../../ui/confirm";
import { NameDialog } from "../../ui/NameDialog";
import { TrashIcon } from "../../ui/icons";
import { toast } from "../../ui/toasts";
import { words } from "../../words";
import * as calls from "../calls";
import type { Passkey } from "../calls";
import { Loaded } from "../parts/Loaded";
import { onDay } from "../parts/days";
import { Listed } from "./Listed";
import { canMakePasskeys, madePasskey } from "./passkey";

const PASSKEYS = ["passkeys"];

export function Passkeys() {
  const client = useQueryClient();
  const query = useQuery({ queryKey: PASSKEYS, queryFn: calls.passkeys });
  const [isNaming, setNaming] = useState(false);
  const again = () => client.invalidateQueries({ queryKey: PASSKEYS });
  const remove = async (passkey: Passkey) => {
    const question = { title: words.removePasskeyTitle(passkey.name), text: words.removePasskeyText, action: words.removePerson };
    if (!(await confirm(question))) return;
    await attempt(() => calls.removePasskey(passkey.id));
    await again();
  };
  return (
    <>
      <p className="hint">{words.passkeysIntro}</p>
      <Loaded query={query}>
        {({ passkeys }) => (
          <Listed
            label={words.passkeys}
            none={words.passkeysNone}
            things={passkeys.map((passkey) => ({
              id: passkey.id,
              name: passkey.name,
              facts: factsOf(passkey),
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
      </Loaded>
      {canMakePasskeys() ? (
        <div className="part-actions">
          <button type="button" className="button" onClick={() => setNaming(true)}>
            {words.addPasskey}
          </button>
        </div>
      ) : (
        <p className="hint">{words.passkeysCannot}</p>
      )}
      {isNaming && (
        <NewPasskey
          onClose={() => setNaming(false)}
          onMade={() => {
            setNaming(false);
            void again();
          }}
        />
      )}
    </>
  );
}

function NewPasskey({ onClose, onMade }: { onClose: () => void; onMade: () => void }) {
  const make = (name: string) =>
    attempt(async () => {
      const credential = await madePasskey(await calls.newPasskeyOptions());
      if (credential === null) {
        toast(words.passkeyNotMade);
        return;
      }
      await calls.addPasskey(name, credential);
      toast(words.passkeyAdded);
      onMade();
    });
  return (
    <NameDialog title={words.addPasskey} label={words.passkeyName} action={words.addPasskey} onClose={onClose} onDone={make} />
  );
}

function factsOf(passkey: Passkey): string {
  const used = passkey.used_at === null ? words.unused : words.lastUsed(ago(passkey.used_at));
  return [words.passkeyFor(passkey.site), words.since(onDay(passkey.created_at)), used].join(" · ");
}
