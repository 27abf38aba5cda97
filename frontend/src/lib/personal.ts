/**
 * What modules hold for the person who is signed in.
 *
 * Always true: nothing of it is there for the next person. Each says so where it is declared, so that no list of them can
 * miss one. What belongs to the browser, such as the theme, is in an ordinary `Store`.
 */
import { Store } from "./store";

const endings = new Set<() => void>();

/** Calls `act` each time that a person has signed out. */
export function whenPersonLeaves(act: () => void): void {
  endings.add(act);
}

export function forgetPerson(): void {
  for (const act of endings) act();
}

/** A store for the whole page that begins with its first value for every person. */
export class PersonalStore<S> extends Store<S> {
  constructor(first: S) {
    super(first);
    whenPersonLeaves(() => this.update(() => first));
  }
}
