/**
 * Browser notifications that an answer is ready, for people who switch them on.
 *
 * Always true: the browser asks for permission only after the person has switched them on, nothing is sent to another origin,
 * and only one tab notifies.
 */
import type { Session } from "../api/types";
import { baseUrl } from "../lib/baseUrl";
import { navigate } from "../lib/router";
import { storage } from "../lib/storage";
import { Store } from "../lib/store";
import { getSessionName } from "../sessions/names";
import { words } from "../words";

const STORAGE_KEY = "notifications";

/** Where the browser remembers who has switched on notifications while the page is closed. */
export const PUSH_STORAGE_KEY = "push";

export type NotificationState = "on" | "off" | "denied" | "unsupported";

/** The state in this browser, shared by all its tabs. */
export const notificationState = new Store<NotificationState>(readState());

window.addEventListener("storage", () => notificationState.update(readState));

function readState(): NotificationState {
  if (!window.isSecureContext || !("Notification" in window)) return "unsupported";
  if (Notification.permission === "denied") return "denied";
  return storage.get(STORAGE_KEY) === "on" && Notification.permission === "granted" ? "on" : "off";
}

/** Switches notifications on, which makes the browser ask for permission, or off. */
export async function setNotifications(isOn: boolean): Promise<void> {
  storage.set(STORAGE_KEY, isOn ? "on" : null);
  if (isOn && "Notification" in window) await Notification.requestPermission();
  notificationState.update(readState);
}

/** Shows a notification. A service worker can also do so on phones, and still runs when the notification is clicked. */
export async function notifyAnswer(session: Session): Promise<void> {
  const name = getSessionName(session);
  const options = {
    body: session.preview || words.answerReady,
    tag: session.id,
    icon: new URL("icons/192.png", baseUrl).href,
    data: { session: session.id },
  };
  const worker = "serviceWorker" in navigator ? await navigator.serviceWorker.getRegistration(baseUrl) : undefined;
  if (worker?.active) {
    await worker.showNotification(name, options);
    return;
  }
  const notification = new Notification(name, options);
  notification.onclick = () => {
    window.focus();
    notification.close();
    navigate(session.id);
  };
}

/** Closes the notification of a conversation that the person looks at now, whichever tab or worker has shown it. */
export async function closeNotification(sessionId: string): Promise<void> {
  if (!window.isSecureContext || !("serviceWorker" in navigator)) return;
  const worker = await navigator.serviceWorker.getRegistration(baseUrl);
  for (const notification of (await worker?.getNotifications({ tag: sessionId })) ?? []) notification.close();
}

/** Opens the conversation of a clicked notification. Returns a function that stops it. */
export function followNotificationClicks(): () => void {
  if (!("serviceWorker" in navigator)) return () => undefined;
  const onMessage = ({ data, ports }: MessageEvent<{ kind?: unknown; session?: unknown } | null>) => {
    if (data?.kind !== "open") return;
    ports[0]?.postMessage("here"); // the service worker asks whether this page is still there
    if (typeof data.session === "string" && data.session !== "") navigate(data.session); // a test is about no conversation
  };
  navigator.serviceWorker.addEventListener("message", onMessage);
  return () => navigator.serviceWorker.removeEventListener("message", onMessage);
}
