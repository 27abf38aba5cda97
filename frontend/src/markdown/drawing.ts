/**
 * Diagrams become pictures. Mermaid draws them, in one hidden frame that is made when the first diagram is seen.
 *
 * Always true: nothing that Mermaid writes enters the page; what comes back is shown as an image, in which browsers run
 * nothing and load nothing. Diagrams are drawn one after the other, each once for each look.
 */
import mermaid from "mermaid/dist/mermaid.min.js?url";
import { home } from "../api/client";
import { words } from "../words";
import { pageLook } from "./look";

export interface Picture {
  address: string;
  width: number;
  height: number;
  says: string; // for those who do not see it
}

/** A picture, or why there is none. */
export type Drawn = Picture | { error: string };

interface Drawing {
  result: Drawn | null; // null: not yet
  coming: Promise<Drawn>;
}

type Answer = { svg: string; width: number; height: number; says: string } | { error: string };

export const LONGEST = 20_000; // characters; whoever writes more has not written it for people
const KEPT = 200; // drawings that are remembered
const PATIENCE = 20_000; // milliseconds, after which the frame is taken for stuck

const drawings = new Map<string, Drawing>();
let frame: Promise<MessagePort> | null = null;
let turn: Promise<unknown> = Promise.resolve();

/** What was drawn before, so that it is there at once. */
export function drawnBefore(source: string, isDark: boolean): Drawn | null {
  return drawings.get(keyOf(source, isDark))?.result ?? null;
}

/** Draw a diagram with the colours that the page has now. Fails when what draws cannot be reached. */
export function draw(source: string, isDark: boolean): Promise<Drawn> {
  const key = keyOf(source, isDark);
  const known = drawings.get(key);
  if (known !== undefined) return known.coming;
  const look = pageLook(isDark);
  const coming = turn.then(() => ask({ source, look }));
  turn = coming.catch(() => undefined);
  const drawing: Drawing = { result: null, coming };
  drawings.set(key, drawing);
  for (const oldest of drawings.keys()) {
    if (drawings.size <= KEPT) break;
    drawings.delete(oldest);
  }
  coming.then(
    (result) => (drawing.result = result),
    () => drawings.delete(key), // to be tried again
  );
  return coming;
}

function keyOf(source: string, isDark: boolean): string {
  return `${isDark ? "dark" : "light"} ${source}`;
}

async function ask(wanted: { source: string; look: object }): Promise<Drawn> {
  frame ??= openFrame();
  const port = await frame.catch((error: unknown) => {
    closeFrame();
    throw error;
  });
  port.postMessage(wanted);
  const answer = await heard<Answer>(port);
  if (answer === null) {
    closeFrame();
    return { error: words.diagramTooSlow };
  }
  if ("error" in answer) return { error: words.diagramWrong(firstLine(answer.error)) };
  const { svg, ...rest } = answer;
  return { ...rest, address: `data:image/svg+xml,${encodeURIComponent(svg)}` };
}

/** What the frame says next; null when it says nothing. */
function heard<Said>(port: MessagePort): Promise<Said | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), PATIENCE);
    port.onmessage = ({ data }: MessageEvent<Said>) => {
      clearTimeout(timer);
      resolve(data);
    };
  });
}

/** The frame, with Mermaid in it. It may fetch nothing itself, and so nothing is kept for it; the page fetches for it. */
async function openFrame(): Promise<MessagePort> {
  const fetched = await fetch(mermaid);
  if (!fetched.ok) throw new Error(`${mermaid}: ${fetched.status}`);
  const program = await fetched.blob();
  const element = document.createElement("iframe");
  element.className = "drawing-frame";
  element.title = words.diagram;
  element.tabIndex = -1;
  element.ariaHidden = "true";
  element.setAttribute("sandbox", "allow-scripts");
  element.src = new URL("diagram.html", home).href;
  const loaded = new Promise((resolve) => (element.onload = resolve));
  document.body.append(element);
  await loaded;
  const { port1, port2 } = new MessageChannel();
  element.contentWindow?.postMessage({ program }, "*", [port2]); // it has no origin that could be named
  if ((await heard<"ready">(port1)) === null) throw new Error("the frame does not answer");
  return port1;
}

function closeFrame(): void {
  document.querySelector(".drawing-frame")?.remove();
  frame = null;
}

function firstLine(text: string): string {
  return text.split("\n", 1).join("").replace(/:$/, ".");
}
