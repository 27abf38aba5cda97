/** Conversations on their way to a project. */

export const DRAGGED = "application/x-palaver-sessions";

/** The ids in what was dropped. */
export function idsIn(transfer: DataTransfer): string[] {
  try {
    const read = JSON.parse(transfer.getData(DRAGGED)) as unknown;
    return Array.isArray(read) ? read.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}
