/** The key that sends a text, in every field for messages. */
import type { KeyboardEvent } from "react";

const IME_KEY_CODE = 229;

/** On a touch screen, Enter starts a new line and a button sends. */
export function isTouch(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}

/** Whether a key event belongs to an input method, which uses Enter and Escape itself. */
export function isComposing({ nativeEvent }: KeyboardEvent): boolean {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- Safari ends the composition before the Enter that ends it
  return nativeEvent.isComposing || nativeEvent.keyCode === IME_KEY_CODE;
}

/** Whether a key event sends the text: Enter without Shift, on a touch screen with Ctrl or Cmd. */
export function isSendKey(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return false;
  return !isTouch() || event.ctrlKey || event.metaKey;
}
