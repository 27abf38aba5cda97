/** Putting a text on the clipboard. */
import { words } from "../words";
import { toast } from "./toasts";

/** Whether it is there now; where the browser does not let us, that is said. */
export async function copy(text: string): Promise<boolean> {
  const isDone = window.isSecureContext ? await given(text) : selected(text);
  if (!isDone) toast(words.notCopied);
  return isDone;
}

async function given(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) {
    if (error instanceof DOMException) return false; // forbidden by the person or their browser
    throw error;
  }
}

/** Where the page is not served securely, as on a home network, only what is selected can be copied. */
function selected(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  const dialogue = [...document.querySelectorAll("dialog[open]")].at(-1);
  (dialogue ?? document.body).append(field); // nothing outside an open dialogue can be selected
  field.select();
  const isDone = document.execCommand("copy"); // eslint-disable-line @typescript-eslint/no-deprecated -- the only way there
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return isDone;
}
