/** Accepts files that are dropped anywhere on a page with a composer. An export of conversations is offered for import. */
import { useState, type DragEvent } from "react";
import { findExport } from "../imports/exportFiles";
import { offerImport } from "../imports/importDialog";

export function useFileDrop(onFiles: (files: readonly File[]) => void) {
  const [isDragging, setDragging] = useState(false);
  const hasFiles = (event: DragEvent) => event.dataTransfer.types.includes("Files");
  const handlers = {
    onDragOver: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setDragging(true);
    },
    onDragLeave: (event: DragEvent) => {
      if (!(event.relatedTarget instanceof Node) || !event.currentTarget.contains(event.relatedTarget)) setDragging(false);
    },
    onDrop: (event: DragEvent) => {
      setDragging(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      void findExport([...event.dataTransfer.files]).then(({ found, others }) => {
        if (found !== null) offerImport(found);
        if (others.length > 0) onFiles(others);
      });
    },
  };
  return { isDragging, handlers };
}
