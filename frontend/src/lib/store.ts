/** A value that changes, and those who look at it. Everything that happens within a frame is shown together. */
import { useCallback, useSyncExternalStore } from "react";

export class Store<S> {
  #value: S;
  #listeners = new Set<() => void>();
  #told = true;

  constructor(value: S) {
    this.#value = value;
  }

  get value(): S {
    return this.#value;
  }

  /** Change it; whoever looks is told soon. */
  update(change: (value: S) => S): void {
    const next = change(this.#value);
    if (next === this.#value) return;
    this.#value = next;
    if (this.#told) {
      this.#told = false;
      soon(() => {
        this.#told = true;
        for (const listener of [...this.#listeners]) listener();
      });
    }
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

/** In the next frame, or soon where no frames are drawn: a page that is hidden just now draws none until it is seen again. */
function soon(act: () => void): void {
  const once = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    act();
  };
  const timer = setTimeout(once, 100);
  const frame = requestAnimationFrame(once);
}

/** Part of a store, in a component. `pick` gives the same object as long as nothing it looks at has changed. */
export function useStore<S, T>(store: Store<S>, pick: (value: S) => T): T {
  const snapshot = useCallback(() => pick(store.value), [store, pick]);
  return useSyncExternalStore(store.subscribe, snapshot);
}
