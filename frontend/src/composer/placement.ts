/** Where a list opens: above or below its field, where there is room. Pure. */

export const GAP_PX = 8; // between the field, the list and the edge of the window
const MAX_HEIGHT_PX = 304;

interface Range {
  top: number;
  bottom: number;
}

export interface Placement {
  side: "above" | "below";
  maxHeight: number;
}

/** Places a list of `height` entirely inside the window: above the field, unless there is too little room and more below. */
export function placeList(field: Range, viewport: Range, height: number): Placement {
  const above = field.top - viewport.top - 2 * GAP_PX;
  const below = viewport.bottom - field.bottom - 2 * GAP_PX;
  const side = above >= Math.min(height, MAX_HEIGHT_PX) || above >= below ? "above" : "below";
  return { side, maxHeight: Math.max(0, Math.min(MAX_HEIGHT_PX, side === "above" ? above : below)) };
}
