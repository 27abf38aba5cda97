/** A value that changes, and its listeners. They hear once of all changes within a frame. */
import { useCallback, useSyncExternalStore } from "react";

const MAX_DELAY_MS = 100;

export class Store<S> {
  #value: S;
  #listeners = new Set<() => void>();
  #isNotifying = false;

  constructor(value: S) {
    this.#value = value;
  }

  get value(): S {
    return this.#value;
  }

  update(change: (value: S) => S): void {
    const next = change(this.#value);
    if (next === this.#value) return;
    this.#value = next;
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    runInNextFrame(() => {
      this.#isNotifying = false;
      for (const listener of [...this.#listeners]) listener();
    });
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

/** A page that has just been hidden draws no frame until it is visible again, so a timer limits the wait. */
function runInNextFrame(act: () => void): void {
  const run = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    act();
  };
  const timer = setTimeout(run, MAX_DELAY_MS);
  const frame = requestAnimationFrame(run);
}

/**
 * The value of a store, or the part of it that `select` returns, in a component. `select` has to return the same object as
 * long as that part has not changed.
 */
export function useStore<S>(store: Store<S>): S;
export function useStore<S, T>(store: Store<S>, select: (value: S) => T): T;
export function useStore<S>(store: Store<S>, select?: (value: S) => unknown): unknown {
  const getSnapshot = useCallback(() => (select === undefined ? store.value : select(store.value)), [store, select]);
  return useSyncExternalStore(store.subscribe, getSnapshot);
}
