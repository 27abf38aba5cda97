/** The list that the sidebar shows. A new conversation starts in the project that is selected there. */
import { Store } from "../lib/store";
import { ACTIVE_VIEW, type ListView } from "../live/listViews";

export const selectedView = new Store<ListView>(ACTIVE_VIEW);

export function selectView(view: ListView): void {
  selectedView.update(() => view);
}
