/** The state of an answer's delivery to a chat platform, with a button to send it again if it failed. */
import { useState } from "react";
import { attempt } from "../api/attempt";
import * as calls from "../api/calls";
import type { Delivery } from "../api/types";
import { getPlatformName } from "../format/platforms";
import { confirm } from "../ui/ConfirmDialog";
import { PlatformIcon } from "../ui/PlatformBadge";
import { words } from "../words";
import "../composer/message.css";

interface Props {
  sessionId: string;
  delivery: Delivery;
  canResend: boolean;
}

export function DeliveryStatus({ sessionId, delivery, canResend }: Props) {
  const { platform, state, error } = delivery;
  const canBeResent = state === "failed" || state === "uncertain";
  return (
    <span className="delivery" data-state={state} title={error ?? undefined}>
      <PlatformIcon platform={platform} />
      {words.deliveryStates[state](getTargetName(platform))}
      {state === "failed" && error !== null && <span className="delivery-error">{error}</span>}
      {canBeResent && canResend && <ResendButton sessionId={sessionId} delivery={delivery} />}
    </span>
  );
}

function getTargetName(platform: string): string {
  return platform === "local" ? words.jobTargetLocal : getPlatformName(platform); // nothing is sent to the terminal
}

/** If the answer may have arrived, the person has to confirm that it may arrive twice. */
function ResendButton({ sessionId, delivery }: Omit<Props, "canResend">) {
  const [isBusy, setBusy] = useState(false);
  const platform = getTargetName(delivery.platform);
  const send = async () => {
    const question = { title: words.resendTitle(platform), text: words.resendText, action: words.resend };
    if (delivery.state === "uncertain" && !(await confirm(question))) return;
    setBusy(true);
    await attempt(() => calls.resendDelivery(sessionId, delivery.id)); // the live stream reports the new state
    setBusy(false);
  };
  return (
    <button type="button" className="text-button" disabled={isBusy} onClick={() => void send()}>
      {delivery.state === "failed" ? words.tryAgain : words.resend}
    </button>
  );
}
