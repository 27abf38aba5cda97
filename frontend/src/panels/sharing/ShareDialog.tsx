/** Creates a shared copy of a conversation for people without an account. */
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { closeShareDialog } from "../../layout/dialogs";
import { useLiveClient, useMe } from "../../live/context";
import { Dialog } from "../../ui/Dialog";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import * as calls from "../shared/calls";
import { SecretField } from "../shared/SecretField";
import "../shared/panels.css";

export default function ShareDialog({ sessionId }: { sessionId: string }) {
  const client = useLiveClient();
  const { name } = useMe().person;
  const [link, setLink] = useState<string | null>(null);
  const runOnce = useSingleFlight();
  const create = () =>
    attempt(async () => {
      const { path } = await calls.createShare(sessionId, client.showsAll.value);
      setLink(new URL(path, location.href).href);
    });
  return (
    <Dialog label={words.share} onClose={closeShareDialog}>
      {link === null ? (
        <>
          <h2>{words.shareTitle}</h2>
          <p>{words.shareText}</p>
          <p>{words.shareNames(name)}</p>
          <div className="dialog-actions">
            <button type="button" className="button" onClick={closeShareDialog}>
              {words.cancel}
            </button>
            <button type="button" className="button primary" onClick={() => void runOnce(create)}>
              {words.createShare}
            </button>
          </div>
        </>
      ) : (
        <>
          <h2>{words.shareLink}</h2>
          <SecretField label={words.shareLink} text={link} hint={words.shareLinkHint} />
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
