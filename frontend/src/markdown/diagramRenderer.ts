/**
 * Renders diagrams as images. Mermaid does that in a hidden frame, which is opened for the first diagram.
 *
 * Always true: nothing that Mermaid writes enters the page. Its result is shown as an image, in which browsers run no scripts
 * and load nothing. Diagrams are rendered one after the other, each once per theme.
 */
import mermaidUrl from "mermaid/dist/mermaid.min.js?url";
import { baseUrl } from "../lib/baseUrl";
import { words } from "../words";
import { readMermaidTheme } from "./mermaidTheme";

export interface DiagramImage {
  url: string;
  width: number;
  height: number;
  description: string; // for screen readers
}

/** An image, or the reason why there is none. */
export type DiagramResult = DiagramImage | { error: string };

interface CachedDiagram {
  result: DiagramResult | null; // null: not rendered yet
  promise: Promise<DiagramResult>;
}

type FrameAnswer = { svg: string; width: number; height: number; description: string } | { error: string };

export const MAX_DIAGRAM_CHARS = 20_000; // a longer text was not written for people to look at
const MAX_CACHED_DIAGRAMS = 200;
const FRAME_TIMEOUT_MS = 20_000; // after it the frame counts as stuck

const cache = new Map<string, CachedDiagram>();
let frame: Promise<MessagePort> | null = null;
let lastJob: Promise<unknown> = Promise.resolve();

/** A diagram that was rendered before and can be shown at once. */
export function getCachedDiagram(source: string, isDark: boolean): DiagramResult | null {
  return cache.get(buildCacheKey(source, isDark))?.result ?? null;
}

/** Renders a diagram in the page's current colors. Rejects when the frame or Mermaid cannot be loaded. */
export function renderDiagram(source: string, isDark: boolean): Promise<DiagramResult> {
  const key = buildCacheKey(source, isDark);
  const cached = cache.get(key);
  if (cached !== undefined) return cached.promise;
  const theme = readMermaidTheme(isDark);
  const promise = lastJob.then(() => askFrame({ source, theme }));
  lastJob = promise.catch(() => undefined);
  const diagram: CachedDiagram = { result: null, promise };
  cache.set(key, diagram);
  for (const oldest of cache.keys()) {
    if (cache.size <= MAX_CACHED_DIAGRAMS) break;
    cache.delete(oldest);
  }
  promise.then(
    (result) => (diagram.result = result),
    () => cache.delete(key), // so that it can be tried again
  );
  return promise;
}

function buildCacheKey(source: string, isDark: boolean): string {
  return `${isDark ? "dark" : "light"} ${source}`;
}

async function askFrame(request: { source: string; theme: object }): Promise<DiagramResult> {
  frame ??= openFrame();
  const port = await frame.catch((error: unknown) => {
    closeFrame();
    throw error;
  });
  port.postMessage(request);
  const answer = await nextMessage<FrameAnswer>(port);
  if (answer === null) {
    closeFrame();
    return { error: words.diagramTooSlow };
  }
  if ("error" in answer) return { error: words.diagramFailed(getFirstLine(answer.error)) };
  const { svg, ...rest } = answer;
  return { ...rest, url: `data:image/svg+xml,${encodeURIComponent(svg)}` };
}

/** Waits for the next message of the frame; null if none comes in time. */
function nextMessage<T>(port: MessagePort): Promise<T | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), FRAME_TIMEOUT_MS);
    port.onmessage = ({ data }: MessageEvent<T>) => {
      clearTimeout(timer);
      resolve(data);
    };
  });
}

/** Opens the frame with Mermaid in it. The frame may not fetch anything, so the page fetches Mermaid for it. */
async function openFrame(): Promise<MessagePort> {
  const response = await fetch(mermaidUrl);
  if (!response.ok) throw new Error(`${mermaidUrl}: ${response.status}`);
  const program = await response.blob();
  const element = document.createElement("iframe");
  element.className = "diagram-frame";
  element.title = words.diagram;
  element.tabIndex = -1;
  element.ariaHidden = "true";
  element.setAttribute("sandbox", "allow-scripts");
  element.src = new URL("diagram.html", baseUrl).href;
  const loaded = new Promise((resolve) => (element.onload = resolve));
  document.body.append(element);
  await loaded;
  const { port1, port2 } = new MessageChannel();
  element.contentWindow?.postMessage({ program }, "*", [port2]); // the frame has no origin that could be named
  if ((await nextMessage<"ready">(port1)) === null) throw new Error("the frame does not answer");
  return port1;
}

function closeFrame(): void {
  document.querySelector(".diagram-frame")?.remove();
  frame = null;
}

function getFirstLine(text: string): string {
  return text.split("\n", 1).join("").replace(/:$/, ".");
}
