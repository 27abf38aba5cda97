/**
 * Shows the match of a search result in its message: opens what it is folded in, scrolls to it and highlights all matches.
 *
 * The highlights are the browser's own (`::highlight`), so the text stays as React has rendered it. Where a browser does not
 * have them, the match is still scrolled to.
 */
import { useEffect, useEffectEvent, type RefObject } from "react";
import type { SearchJump } from "../layout/searchJump";
import { findMatchRanges } from "./matchSpans";

const HIGHLIGHT = "search-match"; // its colors are in conversation.css
const SETTLE_MS = 2000; // in which rows are measured, code is colored and pictures are loaded
const READER_EVENTS = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

/** `scrollBy` moves the messages by some pixels. */
export function useShownMatch(scroller: RefObject<HTMLElement | null>, jump: SearchJump | null, scrollBy: (pixels: number) => void): void {
  const scroll = useEffectEvent(scrollBy);
  useEffect(() => {
    const element = scroller.current;
    if (jump === null || element === null) return;
    let frame = 0;
    const show = () => {
      frame = 0;
      const message = element.querySelector(".row.target > article");
      const ranges = message === null ? [] : findMatchRanges(message, jump.texts);
      const [first] = ranges;
      if (first === undefined) return;
      openDetails(first.startContainer);
      highlight(ranges);
      const { top, height } = element.getBoundingClientRect();
      const distance = Math.round(first.getBoundingClientRect().top - top - height / 3);
      if (Math.abs(distance) > 1) scroll(distance);
    };
    const schedule = () => {
      if (frame === 0) frame = requestAnimationFrame(show);
    };
    const changes = new MutationObserver(schedule);
    const sizes = new ResizeObserver(schedule);
    const settle = () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      changes.disconnect();
      sizes.disconnect();
      for (const name of READER_EVENTS) element.removeEventListener(name, settle);
    };
    const timer = setTimeout(settle, SETTLE_MS);
    changes.observe(element, { childList: true, subtree: true });
    if (element.firstElementChild !== null) sizes.observe(element.firstElementChild);
    for (const name of READER_EVENTS) element.addEventListener(name, settle, { passive: true });
    schedule();
    return () => {
      settle();
      highlight([]);
    };
  }, [scroller, jump]);
}

function highlight(ranges: readonly Range[]): void {
  if (!("highlights" in CSS)) return;
  if (ranges.length === 0) CSS.highlights.delete(HIGHLIGHT);
  else CSS.highlights.set(HIGHLIGHT, new Highlight(...ranges));
}

function openDetails(node: Node): void {
  for (let parent = node.parentElement; parent !== null; parent = parent.parentElement) {
    if (parent instanceof HTMLDetailsElement) parent.open = true;
  }
}
