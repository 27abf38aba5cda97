/**
 * Makes elements that scroll reachable with the keyboard, and only while there is something to scroll.
 *
 * A table or a block of code that fits into its place needs no stop of the Tab key.
 */

interface Scroller {
  element: HTMLElement;
  label: string; // for screen readers
}

const scrollers = new WeakMap<Element, Scroller>(); // by the element itself, and by its content
const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(updateScrollers);

function updateScrollers(entries: readonly ResizeObserverEntry[]): void {
  for (const scroller of new Set(entries.map(({ target }) => scrollers.get(target)))) {
    if (scroller !== undefined) updateScroller(scroller);
  }
}

function updateScroller({ element, label }: Scroller): void {
  const isScrollable = element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight;
  for (const [name, value] of Object.entries({ tabindex: "0", role: "group", "aria-label": label })) {
    if (isScrollable) element.setAttribute(name, value);
    else element.removeAttribute(name);
  }
}

/** Watches an element until the returned function is called. Its first child, if it has one, has the size of the whole content. */
export function watchScroller(element: HTMLElement | null, label: string): () => void {
  const watched = element === null ? [] : [element, ...[...element.children].slice(0, 1)];
  for (const each of watched) {
    if (element !== null) scrollers.set(each, { element, label });
    observer?.observe(each);
  }
  return () => watched.forEach((each) => observer?.unobserve(each));
}
