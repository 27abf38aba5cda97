/**
 * Notices of the browser that an answer is ready, for whoever wants them.
 *
 * Always true: nothing is asked of the browser before somebody switches them on, nothing leaves this origin, and of all
 * tabs one tells.
 */
import { home } from "../api/client";
import type { Session } from "../api/types";
import { keep, recall } from "../lib/keep";
import { go } from "../lib/router";
import { Store } from "../lib/store";
import { nameOf, plain } from "../sidebar/naming";
import { words } from "../words";

const KEPT = "notices";
const LONGEST = 140; // characters of an answer

export type Notices = "on" | "off" | "denied" | "impossible";

/** What holds in this browser, in all its tabs. */
export const notices = new Store<Notices>(current());

window.addEventListener("storage", () => notices.update(current));

function current(): Notices {
  if (!isSecureContext || !("Notification" in window)) return "impossible";
  if (Notification.permission === "denied") return "denied";
  return recall(KEPT) === "on" && Notification.permission === "granted" ? "on" : "off";
}

/** Switch them on, for which the browser asks, or off. */
export async function wantNotices(wanted: boolean): Promise<void> {
  keep(KEPT, wanted ? "on" : null);
  if (wanted && "Notification" in window) await Notification.requestPermission();
  notices.update(current);
}

/** Tell that a conversation was answered. A service worker can do so on phones too, and is there when it is clicked. */
export async function tellOf(session: Session): Promise<void> {
  const name = nameOf(session);
  const options = {
    body: plain(session.preview).slice(0, LONGEST) || words.answerReady,
    tag: session.id,
    icon: new URL("icons/192.png", home).href,
    data: { session: session.id },
  };
  const worker = "serviceWorker" in navigator ? await navigator.serviceWorker.getRegistration(home) : undefined;
  if (worker?.active) {
    await worker.showNotification(name, options);
    return;
  }
  const shown = new Notification(name, options);
  shown.onclick = () => {
    window.focus();
    shown.close();
    go(session.id);
  };
}

/** Go to where a notice leads that was clicked; ends with the function it gives. */
export function heedClicks(): () => void {
  if (!("serviceWorker" in navigator)) return () => undefined;
  const onMessage = ({ data }: MessageEvent<{ kind?: unknown; session?: unknown } | null>) => {
    if (data?.kind === "open" && typeof data.session === "string") go(data.session);
  };
  navigator.serviceWorker.addEventListener("message", onMessage);
  return () => navigator.serviceWorker.removeEventListener("message", onMessage);
}
