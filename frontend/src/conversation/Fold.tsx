/**
 * Shows the beginning of a long text, and all of it on demand.
 *
 * Always true: the whole text is in the page, so that it can be copied, printed and searched. Moving the focus into the hidden
 * part shows it. What is open is known to the list (`FoldContext`), because a text that is scrolled away is forgotten.
 */
import { createContext, use, useId, useRef, type FocusEvent, type ReactNode } from "react";
import { flushSync } from "react-dom";
import { words } from "../words";
import { ALL_FOLDED, choose, isOpen, type FoldState } from "./folding";
import "./Fold.css";

interface Folds {
  state: FoldState;
  onChange: (state: FoldState) => void;
}

export const FoldContext = createContext<Folds>({ state: ALL_FOLDED, onChange: () => undefined });

const TOP_MARGIN_PX = 16; // above a text that was just folded

interface Props {
  rowKey: string;
  part: number; // of the row
  isLong: boolean; // a shorter text is not folded
  children: ReactNode;
}

export function Fold({ rowKey, part, isLong, children }: Props) {
  const { state, onChange } = use(FoldContext);
  const id = useId();
  const element = useRef<HTMLDivElement>(null);
  const isShown = !isLong || isOpen(state, rowKey, part);
  const show = (isNowShown: boolean) => {
    const top = element.current?.getBoundingClientRect().top ?? 0;
    flushSync(() => onChange(choose(state, rowKey, part, isNowShown)));
    if (element.current !== null) keepInPlace(element.current, top);
  };
  const showFocused = (event: FocusEvent) => {
    const bottom = element.current?.getBoundingClientRect().bottom ?? Number.POSITIVE_INFINITY;
    if (!isShown && event.target.getBoundingClientRect().bottom > bottom) show(true);
  };
  return (
    <>
      <div id={id} className={isShown ? "fold" : "fold folded"} ref={element} onFocus={showFocused}>
        {children}
      </div>
      {isLong && (
        <button type="button" className="text-button fold-button" aria-expanded={isShown} aria-controls={id} onClick={() => show(!isShown)}>
          {isShown ? words.showLess : words.showAll}
        </button>
      )}
    </>
  );
}

/**
 * Keeps the start of a text where it was, or in sight if it was above: the list would stay at its end, or show what follows.
 * This observer is newer than the list's own, so the browser calls it after that one.
 */
function keepInPlace(element: HTMLElement, top: number): void {
  const scroller = element.closest(".scroller");
  if (scroller === null) return;
  const isFolded = element.classList.contains("folded");
  const minTop = isFolded ? scroller.getBoundingClientRect().top + TOP_MARGIN_PX : Number.NEGATIVE_INFINITY;
  const observer = new ResizeObserver(() => {
    observer.disconnect();
    scroller.scrollTop += element.getBoundingClientRect().top - Math.max(top, minTop);
  });
  observer.observe(element);
}
