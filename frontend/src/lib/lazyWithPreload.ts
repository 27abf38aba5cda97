/**
 * Like React's `lazy`, with a way to load the component before it is shown.
 *
 * React shows a fallback for a lazy component, and keeps it for a moment so that the page does not flicker. A component that
 * was preloaded is shown at once, without a fallback.
 */
import { lazy, type ComponentType, type LazyExoticComponent } from "react";

interface Module<P> {
  default: ComponentType<P>;
}

export type PreloadableComponent<P> = LazyExoticComponent<ComponentType<P>> & { preload: () => void };

export function lazyWithPreload<P>(importModule: () => Promise<Module<P>>): PreloadableComponent<P> {
  let loaded: Module<P> | null = null;
  const load = async (): Promise<Module<P>> => (loaded ??= await importModule());
  const preload = () => void load().catch(() => undefined); // after a failure it is loaded again when it is shown
  const resolveAtOnce = (module: Module<P>) => ({ then: (resolve: (module: Module<P>) => void) => resolve(module) });
  const component = lazy(() => (loaded === null ? load() : (resolveAtOnce(loaded) as unknown as Promise<Module<P>>)));
  return Object.assign(component, { preload });
}
