/** The title of the browser tab: the name of the open page and the number of unread conversations. */
import { useEffect } from "react";

const PROGRAM_NAME = "Palaver";
let pageTitle = "";
let unreadCount = 0;

/** Sets the name of the open page; an empty one is for the start page. */
export function useDocumentTitle(title: string): void {
  useEffect(() => {
    pageTitle = title;
    writeTitle();
  }, [title]);
}

export function setUnreadCountInTitle(count: number): void {
  unreadCount = count;
  writeTitle();
}

function writeTitle(): void {
  const title = pageTitle === "" ? PROGRAM_NAME : `${pageTitle} · ${PROGRAM_NAME}`;
  document.title = unreadCount === 0 ? title : `(${unreadCount}) ${title}`;
}
