/** Which conversations the list shows. A new conversation begins in the project that is chosen. */
import { Store } from "../lib/store";
import type { View } from "./arrange";

export const CURRENT: View = { shelf: "current", project: null };
export const ARCHIVED: View = { shelf: "archived", project: null };

export const chosenView = new Store<View>(CURRENT);

export function chooseView(view: View): void {
  chosenView.update(() => view);
}
