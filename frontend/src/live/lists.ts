/** Fetching lists of conversations, page by page, into what the page knows. */
import * as calls from "../api/calls";
import type { Session } from "../api/types";
import type { Store } from "../lib/store";
import { Store as ValueStore } from "../lib/store";
import { belongs, UNFETCHED, viewName, type Fetched, type View } from "../sidebar/arrange";
import { without, type State } from "./state";

const PAGE = 60;
const MOST_PINNED = 200;

export class Lists {
  readonly fetched = new ValueStore<Readonly<Record<string, Fetched>>>({});
  #views = new Map<string, View>();
  #round = 0; // what was asked for before a reset is not for us any more

  constructor(
    private readonly state: Store<State>,
    private readonly onFetched: (sessions: readonly Session[]) => void,
    private readonly everybodys: () => boolean,
  ) {}

  /** The next page of a view. */
  async more(view: View): Promise<void> {
    const name = viewName(view);
    const progress = this.fetched.value[name] ?? UNFETCHED;
    if (progress.loading || progress.complete) return;
    this.#views.set(name, view);
    await this.#fetch(view, progress.cursor, progress.frontier === null);
  }

  /** Lists may have changed while nobody told us: fetch their beginnings again. */
  async refresh(): Promise<void> {
    await Promise.all([...this.#views.values()].map((view) => this.#fetch(view, null, true)));
  }

  /** Forget everything: somebody looks with other eyes. */
  reset(): void {
    this.#round += 1;
    this.#views.clear();
    this.fetched.update(() => ({}));
  }

  async #fetch(view: View, cursor: string | null, isFirst: boolean): Promise<void> {
    const round = this.#round;
    this.#note(view, { loading: true, failed: false });
    try {
      const all = this.everybodys();
      const [page, pinned] = await Promise.all([
        calls.listSessions({ ...view, all }, cursor, PAGE),
        isFirst && view.shelf === "current" ? this.#pinned(view, all) : [],
      ]);
      if (round !== this.#round) return;
      if (isFirst) this.#dropGone(view, page.sessions, page.cursor === null);
      this.onFetched([...page.sessions, ...pinned]);
      const before = this.fetched.value[viewName(view)];
      const reachedBefore = isFirst && before?.frontier != null;
      this.#note(view, {
        loading: false,
        ...(reachedBefore
          ? {}
          : {
              cursor: page.cursor,
              complete: page.cursor === null,
              frontier: page.sessions.at(-1)?.active_at ?? before?.frontier ?? "",
            }),
      });
    } catch {
      if (round === this.#round) this.#note(view, { loading: false, failed: true });
    }
  }

  async #pinned(view: View, all: boolean): Promise<Session[]> {
    return (await calls.listSessions({ ...view, shelf: "pinned", all }, null, MOST_PINNED)).sessions;
  }

  /** What the server no longer lists is gone. */
  #dropGone(view: View, page: readonly Session[], isWhole: boolean): void {
    const ids = new Set(page.map((session) => session.id));
    const frontier = isWhole ? "" : (page.at(-1)?.active_at ?? "");
    const gone = [...this.state.value.sessions.values()].filter(
      (session) =>
        belongs(session, view) && !ids.has(session.id) && (session.active_at ?? "") > frontier && !session.running,
    );
    if (gone.length > 0) this.state.update((state) => without(state, gone.map((session) => session.id)));
  }

  #note(view: View, changes: Partial<Fetched>): void {
    const name = viewName(view);
    this.fetched.update((all) => ({ ...all, [name]: { ...UNFETCHED, ...all[name], ...changes } }));
  }
}
