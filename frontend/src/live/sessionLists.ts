/** Loads lists of conversations page by page into the state. */
import * as calls from "../api/calls";
import type { Session } from "../api/types";
import { Store } from "../lib/store";
import { getViewKey, isInView, NOT_LOADED, type ListProgress, type ListView } from "./listViews";
import { removeSessions, type State } from "./state";

const PAGE_SIZE = 60;
const MAX_PINNED = 200;

export class SessionLists {
  readonly progress = new Store<Readonly<Record<string, ListProgress>>>({});
  #views = new Map<string, ListView>();
  #generation = 0; // answers to requests from before a reset are ignored

  constructor(
    private readonly state: Store<State>,
    private readonly onLoaded: (sessions: readonly Session[]) => void,
    private readonly showsAll: () => boolean,
  ) {}

  /** Loads the next page of a view. */
  async loadMore(view: ListView): Promise<void> {
    const key = getViewKey(view);
    const progress = this.progress.value[key] ?? NOT_LOADED;
    if (progress.loading || progress.complete) return;
    this.#views.set(key, view);
    await this.#loadPage(view, progress.cursor, progress.frontier === null);
  }

  /** Loads the first page of every view again, because the lists may have changed without an event. */
  async refresh(): Promise<void> {
    await Promise.all([...this.#views.values()].map((view) => this.#loadPage(view, null, true)));
  }

  /** Forgets everything, because the reader now sees other conversations. */
  reset(): void {
    this.#generation += 1;
    this.#views.clear();
    this.progress.update(() => ({}));
  }

  async #loadPage(view: ListView, cursor: string | null, isFirst: boolean): Promise<void> {
    const generation = this.#generation;
    const known = this.state.value.sessions;
    this.#setProgress(view, { loading: true, failed: false });
    try {
      const all = this.showsAll();
      const [page, pinned] = await Promise.all([
        calls.listSessions({ ...view, all }, cursor, PAGE_SIZE),
        isFirst && view.state === "active" ? this.#loadPinned(view, all) : [],
      ]);
      if (generation !== this.#generation) return;
      if (isFirst) this.#removeDeleted(view, known, page.sessions, page.next_cursor === null);
      this.onLoaded([...page.sessions, ...pinned]);
      const before = this.progress.value[getViewKey(view)];
      const hasLoadedBefore = isFirst && before?.frontier != null;
      this.#setProgress(view, {
        loading: false,
        ...(hasLoadedBefore
          ? {}
          : {
              cursor: page.next_cursor,
              complete: page.next_cursor === null,
              frontier: page.sessions.at(-1)?.active_at ?? before?.frontier ?? "",
            }),
      });
    } catch {
      if (generation === this.#generation) this.#setProgress(view, { loading: false, failed: true });
    }
  }

  async #loadPinned(view: ListView, all: boolean): Promise<Session[]> {
    return (await calls.listSessions({ ...view, state: "pinned", all }, null, MAX_PINNED)).sessions;
  }

  /** Removes the sessions that the server no longer lists. Those that have changed since it was asked are newer than its answer. */
  #removeDeleted(view: ListView, known: State["sessions"], page: readonly Session[], isComplete: boolean): void {
    const ids = new Set(page.map((session) => session.id));
    const frontier = isComplete ? "" : (page.at(-1)?.active_at ?? "");
    const deleted = [...this.state.value.sessions.values()].filter(
      (session) =>
        session === known.get(session.id) && isInView(session, view) && !ids.has(session.id) && (session.active_at ?? "") > frontier && !session.running,
    );
    if (deleted.length > 0) this.state.update((state) => removeSessions(state, deleted.map((session) => session.id)));
  }

  #setProgress(view: ListView, changes: Partial<ListProgress>): void {
    const key = getViewKey(view);
    this.progress.update((all) => ({ ...all, [key]: { ...NOT_LOADED, ...all[key], ...changes } }));
  }
}
