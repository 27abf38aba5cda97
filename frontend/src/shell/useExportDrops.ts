/**
 * Handles files that are dropped where nothing accepts them: an export is offered for import. Everything else is ignored,
 * because the browser would leave the page to show it.
 */
import { useEffect } from "react";
import { findExport } from "../imports/exportFiles";
import { offerImport } from "../imports/importDialog";

export function useExportDrops(): void {
  useEffect(() => {
    const hasUnhandledFiles = (event: DragEvent) => !event.defaultPrevented && event.dataTransfer?.types.includes("Files") === true;
    const allow = (event: DragEvent) => {
      if (hasUnhandledFiles(event)) event.preventDefault();
    };
    const handle = (event: DragEvent) => {
      if (!hasUnhandledFiles(event)) return;
      event.preventDefault();
      void findExport([...(event.dataTransfer?.files ?? [])]).then(({ found }) => {
        if (found !== null) offerImport(found);
      });
    };
    window.addEventListener("dragover", allow);
    window.addEventListener("drop", handle);
    return () => {
      window.removeEventListener("dragover", allow);
      window.removeEventListener("drop", handle);
    };
  }, []);
}
