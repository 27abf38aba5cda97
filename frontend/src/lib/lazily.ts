/**
 * A component that is fetched when it is first shown, or before.
 *
 * React waits a moment before it replaces what stands for a component that was not there, so that pages do not flicker.
 * One that was fetched before is handed over at once, and nothing has to stand for it.
 */
import { lazy, type ComponentType, type LazyExoticComponent } from "react";

interface Module<P> {
  default: ComponentType<P>;
}

export type Lazily<P> = LazyExoticComponent<ComponentType<P>> & { fetch: () => void };

export function lazily<P>(load: () => Promise<Module<P>>): Lazily<P> {
  let fetched: Module<P> | null = null;
  const fetch = async (): Promise<Module<P>> => (fetched ??= await load());
  const ahead = () => void fetch().catch(() => undefined); // what fails now is tried again when it is shown
  const atOnce = (module: Module<P>) => ({ then: (hand: (module: Module<P>) => void) => hand(module) });
  const component = lazy(() => (fetched === null ? fetch() : (atOnce(fetched) as unknown as Promise<Module<P>>)));
  return Object.assign(component, { fetch: ahead });
}
