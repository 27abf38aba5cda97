/**
 * Notifications while the page is closed. The browser's push service delivers them to the service worker.
 *
 * Always true: a browser is subscribed only for a person who has switched it on there, and the subscription ends when they
 * switch it off or sign out. If they sign in again, it is restored; another person in the same browser is not subscribed.
 */
import * as calls from "../api/calls";
import { ApiError } from "../api/errors";
import { baseUrl } from "../lib/baseUrl";
import { storage } from "../lib/storage";
import { PUSH_STORAGE_KEY } from "./browserNotifications";

export function canUsePush(): boolean {
  return window.isSecureContext && "serviceWorker" in navigator && "PushManager" in window;
}

/** Subscribes this browser, which makes it ask for permission, and tells the server. */
export async function turnPushOn(personId: string): Promise<void> {
  const { server_key } = await calls.getPushStatus();
  const manager = await getManager();
  const old = await manager.getSubscription();
  if (old !== null && !hasKey(old, server_key)) await old.unsubscribe();
  const options = { userVisibleOnly: true, applicationServerKey: decodeKey(server_key) };
  const subscription = await manager.subscribe(options);
  try {
    await sendSubscription(subscription);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 422) throw error;
    await subscription.unsubscribe(); // its address belongs to another person: the browser gets a new one
    await sendSubscription(await manager.subscribe(options));
  }
  storage.set(PUSH_STORAGE_KEY, personId);
}

export async function turnPushOff(): Promise<void> {
  storage.set(PUSH_STORAGE_KEY, null);
  await calls.unsubscribeFromPush();
  await (await (await getManager()).getSubscription())?.unsubscribe();
}

/** Subscribes again if the server has lost the subscription: it may have a new key, or the person signed in again. */
export async function restorePush(personId: string): Promise<void> {
  if (storage.get(PUSH_STORAGE_KEY) !== personId || !canUsePush() || Notification.permission !== "granted") return;
  const { is_enabled, is_subscribed, server_key } = await calls.getPushStatus();
  if (!is_enabled) return;
  const subscription = await (await getManager()).getSubscription();
  if (!is_subscribed || subscription === null || !hasKey(subscription, server_key)) await turnPushOn(personId);
}

async function getManager(): Promise<PushManager> {
  const worker = (await navigator.serviceWorker.getRegistration(baseUrl)) ?? (await navigator.serviceWorker.ready);
  return worker.pushManager;
}

function sendSubscription(subscription: PushSubscription): Promise<void> {
  const { endpoint, keys } = subscription.toJSON();
  return calls.subscribeToPush({ endpoint: endpoint ?? "", keys: { p256dh: keys?.p256dh ?? "", auth: keys?.auth ?? "" } });
}

function hasKey(subscription: PushSubscription, key: string): boolean {
  const current = subscription.options.applicationServerKey;
  return current === null || encodeKey(new Uint8Array(current)) === key;
}

export function decodeKey(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

function encodeKey(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
