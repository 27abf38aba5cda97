/** The list that the sidebar shows. A new conversation starts in the project that is selected there. */
import { PersonalStore } from "../lib/personal";
import { ACTIVE_VIEW, type ListView } from "../live/listViews";

export const selectedView = new PersonalStore<ListView>(ACTIVE_VIEW);

export function selectView(view: ListView): void {
  selectedView.update(() => view);
}
