/*
 * Caches the shell of the page, so that the page opens without a connection: the document, and the files whose names a build
 * derived from their content. Nothing that the server sends about people and conversations is cached here.
 */
const CACHE_NAME = "palaver-shell";
const LANGUAGE_CACHE_NAME = "palaver-language"; // survives the worker, which the browser stops when it has nothing to do
const RETRY_DELAYS_MS = [500, 1000, 2000]; // in which a connection comes back, or a server that is started again
const ANSWER_MS = 500; // how long a page may take to answer; a browser allows to open a window for a second after a click
const CHECK_MS = 50;
const baseUrl = new URL("./", self.location.href);
const assets = new URL("assets/", baseUrl).href;

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(self.clients.claim());
});

// The page reports its language and which files it has loaded. They are in the browser's own cache, so they are not
// downloaded again.
self.addEventListener("message", (event) => {
  if (event.data?.kind !== "loaded") return;
  event.waitUntil(Promise.all([saveLanguage(event.data.language), cacheLoadedFiles(event.data.files)]));
});

// A notification that arrives while the page is closed, or open in the background. A person who looks at the page sees the
// answer itself. The tag is that of the page's own notification, so that there is one for each conversation.
self.addEventListener("push", (event) => {
  event.waitUntil(showPush(event.data));
});

// A click on a notification opens its conversation, in a tab that is already open if there is one.
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(Promise.all([openSession(event.notification.data.session), updateBadge()]));
});

// A notification that was dismissed is not counted any more. An open page counts unread conversations itself.
self.addEventListener("notificationclose", (event) => {
  event.waitUntil(findPages().then((pages) => (pages.length === 0 ? updateBadge() : undefined)));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(baseUrl.href)) return;
  if (request.mode === "navigate" && isPage(new URL(request.url))) event.respondWith(fetchPage(request));
  else if (request.url.startsWith(assets)) event.respondWith(fetchFile(request));
});

/** The page's own addresses have one path segment; those of the API have more. */
function isPage(url) {
  const path = url.pathname.slice(baseUrl.pathname.length);
  return !path.includes("/") && path !== "api" && path !== "metrics" && !path.includes(".");
}

async function showPush(data) {
  const message = readPush(data);
  const isVisible = (await findPages()).some((page) => page.visibilityState === "visible");
  if (isVisible && message.kind !== "test") return;
  const texts = await loadTexts();
  await self.registration.showNotification(message.title || "Palaver", {
    body: message.body || texts[message.kind === "test" ? "test" : "answer"],
    tag: message.session || "test",
    icon: new URL("icons/192.png", baseUrl).href,
    data: { session: message.session || "" },
  });
  await updateBadge();
}

function readPush(data) {
  try {
    const message = data.json();
    return typeof message === "object" && message !== null ? message : {};
  } catch {
    return {};
  }
}

async function saveLanguage(language) {
  if (typeof language !== "string") return;
  await (await caches.open(LANGUAGE_CACHE_NAME)).put(baseUrl.href, new Response(language));
}

/** The page may be closed, and its texts are not here: these two are, in the language that the page had. */
async function loadTexts() {
  const saved = await (await caches.open(LANGUAGE_CACHE_NAME)).match(baseUrl.href);
  return (saved === undefined ? self.navigator.language : await saved.text()).startsWith("de")
    ? { answer: "Deine Antwort ist fertig.", test: "Benachrichtigungen funktionieren." }
    : { answer: "Your answer is ready.", test: "Notifications work." };
}

/** While the page is closed, the badge counts the notifications. */
async function updateBadge() {
  const { length } = await self.registration.getNotifications();
  if (!("setAppBadge" in self.navigator)) return;
  await (length === 0 ? self.navigator.clearAppBadge() : self.navigator.setAppBadge(length)).catch(() => undefined);
}

/** The open windows of the page. A shared copy is for readers who may not be signed in. */
async function findPages() {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  return windows.filter(({ url }) => url.startsWith(baseUrl.href) && new URL(url).pathname !== `${baseUrl.pathname}shared`);
}

/**
 * Shows a conversation in an open page, or else in a new window. A browser allows one of both, once for each click, so a page
 * has to answer before it gets the focus: its tab may just be closing.
 */
async function openSession(session) {
  const pages = await findPages();
  pages.sort((one, other) => Number(other.visibilityState === "visible") - Number(one.visibilityState === "visible"));
  const openWindow = () => self.clients.openWindow(new URL(encodeURIComponent(session), baseUrl));
  for (const page of pages) if (await showInPage(page, session)) return page.focus().catch(openWindow);
  return openWindow();
}

/** Whether a page is still there. One that is, and does not answer in time, is busy or frozen: it answers after it has the focus. */
async function showInPage(page, session) {
  const { port1, port2 } = new MessageChannel();
  const answer = new Promise((resolve) => (port1.onmessage = () => resolve(true)));
  page.postMessage({ kind: "open", session }, [port2]); // a test is about no conversation: its session is empty
  for (let waited = 0; waited < ANSWER_MS; waited += CHECK_MS) {
    if (await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, CHECK_MS))])) return true;
    if ((await self.clients.get(page.id)) === undefined) return false;
  }
  return true;
}

/** The newest document or, without a connection, the cached one. */
async function fetchPage(request) {
  const cache = await caches.open(CACHE_NAME);
  try {
    const response = await fetch(request);
    if (response.status < 502) return response;
    return (await cache.match(baseUrl.href)) ?? response;
  } catch (error) {
    const cached = await cache.match(baseUrl.href);
    if (cached === undefined) throw error;
    return cached;
  }
}

/** A file whose name changes with its content, so it is downloaded once. */
async function fetchFile(request) {
  const cache = await caches.open(CACHE_NAME);
  const cached = await cache.match(request.url);
  if (cached !== undefined) return cached;
  const response = await fetchWithRetries(request);
  if (response.ok) await cache.put(request.url, response.clone());
  return response;
}

/** A part of the page that fails to load stays away until the page is reloaded, so a short interruption is bridged. */
async function fetchWithRetries(request) {
  for (const delay of RETRY_DELAYS_MS) {
    try {
      return await fetch(request);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
  return fetch(request);
}

/** Caches the document and its files, and deletes the files of an older document. */
async function cacheLoadedFiles(files) {
  const cache = await caches.open(CACHE_NAME);
  const response = await fetch(baseUrl.href, { cache: "no-cache" });
  if (!response.ok) return;
  const previous = await cache.match(baseUrl.href);
  const isNew = previous === undefined || (await previous.text()) !== (await response.clone().text());
  if (isNew) for (const request of await cache.keys()) await cache.delete(request);
  await cache.put(baseUrl.href, response);
  const assetFiles = files.filter((file) => typeof file === "string" && file.startsWith(assets));
  await Promise.all(assetFiles.map(async (file) => (await cache.match(file)) ?? cache.add(file)));
}
