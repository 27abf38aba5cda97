/** Changes when a shared link expires. */
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { Dialog } from "../../ui/Dialog";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import type { Share } from "../shared/calls";
import * as calls from "../shared/calls";
import { formatDayInput, resolveExpiry, type Expiry } from "../shared/expiry";
import { ExpiryField } from "../shared/ExpiryField";

interface Props {
  share: Share;
  name: string;
  isOwner: boolean;
  onClose: () => void;
  onChanged: () => void;
}

export function ExpiryDialog({ share, name, isOwner, onClose, onChanged }: Props) {
  const [expiry, setExpiry] = useState(() => readExpiry(share));
  const runOnce = useSingleFlight();
  const expiresAt = resolveExpiry(expiry);
  const save = () =>
    attempt(async () => {
      if (expiresAt === undefined) return;
      await calls.setShareExpiry(share.id, expiresAt, isOwner);
      onChanged();
      onClose();
    });
  return (
    <Dialog label={words.changeExpiryTitle(name)} onClose={onClose}>
      <h2>{words.changeExpiryTitle(name)}</h2>
      <ExpiryField value={expiry} onChange={setExpiry} />
      <div className="dialog-actions">
        <button type="button" className="button" onClick={onClose}>
          {words.cancel}
        </button>
        <button type="button" className="button primary" disabled={expiresAt === undefined} onClick={() => void runOnce(save)}>
          {words.save}
        </button>
      </div>
    </Dialog>
  );
}

function readExpiry({ expires_at: at }: Share): Expiry {
  if (at === null) return { choice: "never", day: "" };
  return { choice: "date", day: formatDayInput(new Date(new Date(at).getTime() - 1)) };
}
