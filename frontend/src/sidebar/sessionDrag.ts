/** Dragging conversations to a project. */

export const SESSION_DRAG_TYPE = "application/x-palaver-sessions";

export function readDraggedIds(transfer: DataTransfer): string[] {
  try {
    const ids = JSON.parse(transfer.getData(SESSION_DRAG_TYPE)) as unknown;
    return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}
