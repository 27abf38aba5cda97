/** Where something was sent besides being read here, and how that stands. */
import { useState } from "react";
import * as calls from "../api/calls";
import type { Delivery } from "../api/types";
import { platformName } from "../sidebar/naming";
import { confirm } from "../ui/confirm";
import { PlatformSign } from "../ui/PlatformBadge";
import { words } from "../words";
import { attempt } from "./actions";

/** Of a message: it goes along with its answer. */
export function GoesTo({ platform }: { platform: string }) {
  return (
    <span className="delivery">
      <PlatformSign platform={platform} />
      {words.goesAlong(platformName(platform))}
    </span>
  );
}

interface Props {
  session: string;
  delivery: Delivery;
  mayAct: boolean;
}

/** Of an answer. */
export function Delivered({ session, delivery, mayAct }: Props) {
  const { platform, state, error } = delivery;
  const isOver = state === "failed" || state === "uncertain";
  return (
    <span className="delivery" data-state={state} title={error ?? undefined}>
      <PlatformSign platform={platform} />
      {words.deliveryStates[state](platformName(platform))}
      {state === "failed" && error !== null && <span className="why">{error}</span>}
      {isOver && mayAct && <SendAgain session={session} delivery={delivery} />}
    </span>
  );
}

/** What may have arrived is sent again only when somebody has been told so, and wants it. */
function SendAgain({ session, delivery }: Omit<Props, "mayAct">) {
  const [isBusy, setBusy] = useState(false);
  const platform = platformName(delivery.platform);
  const send = async () => {
    const question = { title: words.sendAgainTitle(platform), text: words.sendAgainText, action: words.sendAgain };
    if (delivery.state === "uncertain" && !(await confirm(question))) return;
    setBusy(true);
    await attempt(() => calls.sendAgain(session, delivery.id)); // how it stands then is told by the live stream
    setBusy(false);
  };
  return (
    <button type="button" className="text-button" disabled={isBusy} onClick={() => void send()}>
      {delivery.state === "failed" ? words.again : words.sendAgain}
    </button>
  );
}
