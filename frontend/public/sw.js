/*
 * Caches the shell of the page, so that the page opens without a connection: the document, and the files whose names a build
 * derived from their content. Nothing that the server sends about people and conversations is cached here.
 */
const CACHE_NAME = "palaver-shell";
const baseUrl = new URL("./", self.location.href);
const assets = new URL("assets/", baseUrl).href;

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(self.clients.claim());
});

// The page reports which files it has loaded. They are in the browser's own cache, so they are not downloaded again.
self.addEventListener("message", (event) => {
  if (event.data?.kind === "loaded") event.waitUntil(cacheLoadedFiles(event.data.files));
});

// A click on a notification opens its conversation, in a tab that is already open if there is one.
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openSession(event.notification.data.session));
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

async function openSession(session) {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const pages = windows.filter(({ url }) => url.startsWith(baseUrl.href) && new URL(url).pathname !== `${baseUrl.pathname}shared`);
  const page = pages.find((page) => page.visibilityState === "visible") ?? pages[0];
  if (page === undefined) return self.clients.openWindow(new URL(encodeURIComponent(session), baseUrl));
  page.postMessage({ kind: "open", session });
  return page.focus();
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
  const response = await fetch(request);
  if (response.ok) await cache.put(request.url, response.clone());
  return response;
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
