/** The title of the tab: what is shown, and how many conversations wait to be read. */
import { useEffect } from "react";

const PROGRAM = "Palaver";
let shown = "";
let waiting = 0;

/** What the page shows; nothing: the start page. */
export function useTitle(title: string): void {
  useEffect(() => {
    shown = title;
    write();
  }, [title]);
}

export function countInTitle(count: number): void {
  waiting = count;
  write();
}

function write(): void {
  const title = shown === "" ? PROGRAM : `${shown} · ${PROGRAM}`;
  document.title = waiting === 0 ? title : `(${waiting}) ${title}`;
}
