/*
 * Keeps the shell of the page, so that it opens without a connection: the document, and the files that a build has
 * named by their content. Everything the server says about people and conversations goes by; nothing of it is kept here.
 */
const SHELL = "palaver-shell";
const home = new URL("./", self.location.href);
const assets = new URL("assets/", home).href;

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(self.clients.claim());
});

// The page tells which files it has loaded; they lie in the browser's own cache, and are not fetched again.
self.addEventListener("message", (event) => {
  if (event.data?.kind === "loaded") event.waitUntil(keepLoaded(event.data.files));
});

// A notice that an answer is ready leads to it, in a page that is open already where there is one.
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openSession(event.notification.data.session));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(home.href)) return;
  if (request.mode === "navigate" && isPage(new URL(request.url))) event.respondWith(openedPage(request));
  else if (request.url.startsWith(assets)) event.respondWith(keptFile(request));
});

/** The page's own addresses have one step; the API's have more. */
function isPage(url) {
  const step = url.pathname.slice(home.pathname.length);
  return !step.includes("/") && step !== "api" && step !== "metrics" && !step.includes(".");
}

async function openSession(session) {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const pages = windows.filter(({ url }) => url.startsWith(home.href) && new URL(url).pathname !== `${home.pathname}shared`);
  const page = pages.find((each) => each.visibilityState === "visible") ?? pages[0];
  if (page === undefined) return self.clients.openWindow(new URL(encodeURIComponent(session), home));
  page.postMessage({ kind: "open", session });
  return page.focus();
}

/** The newest document, or the one that was kept where there is no connection. */
async function openedPage(request) {
  const shell = await caches.open(SHELL);
  try {
    const answer = await fetch(request);
    if (answer.status < 502) return answer;
    return (await shell.match(home.href)) ?? answer;
  } catch (error) {
    const kept = await shell.match(home.href);
    if (kept === undefined) throw error;
    return kept;
  }
}

/** A file that never changes: fetched once. */
async function keptFile(request) {
  const shell = await caches.open(SHELL);
  const kept = await shell.match(request.url);
  if (kept !== undefined) return kept;
  const answer = await fetch(request);
  if (answer.ok) await shell.put(request.url, answer.clone());
  return answer;
}

/** Keep the document and its files; what belongs to another document is let go. */
async function keepLoaded(files) {
  const shell = await caches.open(SHELL);
  const answer = await fetch(home.href, { cache: "no-cache" });
  if (!answer.ok) return;
  const before = await shell.match(home.href);
  const isNew = before === undefined || (await before.text()) !== (await answer.clone().text());
  if (isNew) for (const request of await shell.keys()) await shell.delete(request);
  await shell.put(home.href, answer);
  const wanted = files.filter((file) => typeof file === "string" && file.startsWith(assets));
  await Promise.all(wanted.map(async (file) => (await shell.match(file)) ?? shell.add(file)));
}
