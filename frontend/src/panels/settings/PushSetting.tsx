/** Notifications while the page is closed: a switch, and a button that sends one. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { getPushStatus } from "../../api/calls";
import { describeError } from "../../api/errors";
import { useMe } from "../../live/context";
import { canUsePush, turnPushOff, turnPushOn } from "../../notifications/pushSubscription";
import { SegmentedControl } from "../../ui/SegmentedControl";
import { toast } from "../../ui/toasts";
import { words } from "../../words";
import { sendTestPush } from "../shared/calls";

export function PushSetting() {
  const queryClient = useQueryClient();
  const personId = useMe().person.id;
  const { data: status } = useQuery({ queryKey: ["push"], queryFn: getPushStatus, enabled: canUsePush() });
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const isOn = status?.is_subscribed === true;
  const change = async (on: boolean) => {
    setBusy(true);
    setProblem(null);
    try {
      await (on ? turnPushOn(personId) : turnPushOff());
    } catch (error) {
      setProblem(describeProblem(error, on));
    }
    await queryClient.invalidateQueries({ queryKey: ["push"] });
    setBusy(false);
  };
  const sendTest = () =>
    sendTestPush().then(
      () => toast(words.testNotificationSent),
      (error: unknown) => toast(words.testNotificationFailed(describeError(error))),
    );
  const state = !canUsePush() ? words.notifyClosedUnsupported : status?.is_enabled === false ? words.notifyClosedDisabled : words.notifyClosedHint;
  const hint = problem ?? state;
  return (
    <>
      <div className="setting-line" aria-busy={isBusy}>
        <span>{words.notifyClosed}</span>
        {canUsePush() && status?.is_enabled === true && (
          <SegmentedControl
            label={words.notifyClosed}
            value={isOn ? "on" : "off"}
            onChange={(value) => void change(value === "on")}
            choices={[
              ["off", words.switchOff],
              ["on", words.switchOn],
            ]}
          />
        )}
      </div>
      <p className="hint" role="status">
        {hint}
      </p>
      {isOn && (
        <button type="button" className="button" onClick={() => void sendTest()}>
          {words.sendTestNotification}
        </button>
      )}
    </>
  );
}

/** Why notifications could not be switched on or off. A browser without a push service says so itself. */
function describeProblem(error: unknown, on: boolean): string {
  if (!(error instanceof DOMException)) return (on ? words.notifyClosedFailed : words.notifyClosedStillOn)(describeError(error));
  if (error.name !== "NotAllowedError") return words.notifyClosedRefused(error.message.replace(/\.$/, ""));
  return Notification.permission === "denied" ? words.notificationsDenied : words.notifyClosedDismissed;
}
