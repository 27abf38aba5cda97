/** Copies text to the clipboard. */
import { words } from "../words";
import { toast } from "./toasts";

/** Returns whether the text was copied. Shows a toast if the browser does not allow it. */
export async function copyText(text: string): Promise<boolean> {
  const isCopied = window.isSecureContext ? await writeToClipboard(text) : copyBySelection(text);
  if (!isCopied) toast(words.copyFailed);
  return isCopied;
}

async function writeToClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) {
    if (error instanceof DOMException) return false; // the person or the browser forbids it
    throw error;
  }
}

/** Without HTTPS, as on a home network, the browser can copy only selected text. */
function copyBySelection(text: string): boolean {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  const dialog = [...document.querySelectorAll("dialog[open]")].at(-1);
  (dialog ?? document.body).append(field); // text outside of an open dialog cannot be selected
  field.select();
  const isCopied = document.execCommand("copy"); // eslint-disable-line @typescript-eslint/no-deprecated -- nothing else works without HTTPS
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
