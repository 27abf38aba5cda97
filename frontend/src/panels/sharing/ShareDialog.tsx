/** Making a copy of a conversation for people who have no account here. */
import { useState } from "react";
import { attempt } from "../../conversation/actions";
import { useCenter } from "../../live/context";
import { Dialog } from "../../ui/Dialog";
import { useOnce } from "../../ui/useOnce";
import { words } from "../../words";
import * as calls from "../calls";
import { Secret } from "../parts/Secret";
import { closeSharing } from "./open";
import "../parts/parts.css";

export default function ShareDialog({ session }: { session: string }) {
  const center = useCenter();
  const [link, setLink] = useState<string | null>(null);
  const once = useOnce();
  const make = () =>
    attempt(async () => {
      const { path } = await calls.makeShare(session, center.everybodys.value);
      setLink(new URL(path, location.href).href);
    });
  return (
    <Dialog label={words.share} onClose={closeSharing}>
      {link === null ? (
        <>
          <h2>{words.shareTitle}</h2>
          <p>{words.shareText}</p>
          <div className="dialog-actions">
            <button type="button" className="button" onClick={closeSharing}>
              {words.cancel}
            </button>
            <button type="button" className="button primary" onClick={() => void once(make)}>
              {words.shareMake}
            </button>
          </div>
        </>
      ) : (
        <>
          <h2>{words.shareLink}</h2>
          <Secret label={words.shareLink} text={link} />
          <div className="dialog-actions">
            <button type="button" className="button primary" onClick={closeSharing}>
              {words.done}
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}
