/** Creates a shared copy of a conversation for people without an account. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { closeShareDialog } from "../../layout/dialogs";
import { useLiveClient, useMe } from "../../live/context";
import { Dialog } from "../../ui/Dialog";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import * as calls from "../shared/calls";
import { makeExpiry, resolveExpiry, type Expiry } from "../shared/expiry";
import { ExpiryField } from "../shared/ExpiryField";
import { SecretField } from "../shared/SecretField";
import "../shared/panels.css";

export default function ShareDialog({ sessionId }: { sessionId: string }) {
  const client = useLiveClient();
  const { name } = useMe().person;
  const [link, setLink] = useState<string | null>(null);
  const [chosen, setChosen] = useState<Expiry | null>(null);
  const { data: shares } = useQuery({ queryKey: ["share-default"], queryFn: () => calls.listShares(false, null), staleTime: Infinity });
  const expiry = chosen ?? makeExpiry(shares?.default_days ?? null);
  const expiresAt = resolveExpiry(expiry);
  const runOnce = useSingleFlight();
  const create = () =>
    attempt(async () => {
      if (expiresAt === undefined) return;
      const { path } = await calls.createShare(sessionId, client.showsAll.value, expiresAt);
      setLink(new URL(path, location.href).href);
    });
  return (
    <Dialog label={words.share} onClose={closeShareDialog}>
      {link === null ? (
        <>
          <h2>{words.shareTitle}</h2>
          <p>{words.shareText}</p>
          <p>{words.shareNames(name)}</p>
          <ExpiryField value={expiry} onChange={setChosen} />
          <div className="dialog-actions">
            <button type="button" className="button" onClick={closeShareDialog}>
              {words.cancel}
            </button>
            <button type="button" className="button primary" disabled={expiresAt === undefined} onClick={() => void runOnce(create)}>
              {words.createShare}
            </button>
          </div>
        </>
      ) : (
        <>
          <h2>{words.shareCreated}</h2>
          <SecretField label={words.shareLink} text={link} hint={words.shareLinkHint} takesFocus />
          <div className="dialog-actions">
            <button type="button" className="button primary" onClick={closeShareDialog}>
              {words.done}
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}
