/** Files that are dropped somewhere on a page around a composer. */
import { useState, type DragEvent } from "react";

const NONE: readonly File[] = [];

export function useDrop() {
  const [files, setFiles] = useState<readonly File[]>(NONE);
  const [isOver, setOver] = useState(false);
  const hasFiles = (event: DragEvent) => event.dataTransfer.types.includes("Files");
  const handlers = {
    onDragOver: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: (event: DragEvent) => {
      if (!(event.relatedTarget instanceof Node) || !event.currentTarget.contains(event.relatedTarget)) setOver(false);
    },
    onDrop: (event: DragEvent) => {
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      setFiles([...event.dataTransfer.files]);
    },
  };
  return { files, isOver, handlers };
}
