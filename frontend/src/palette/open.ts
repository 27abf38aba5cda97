/** Whether the palette is open. */
import { Store } from "../lib/store";

export const paletteOpen = new Store(false);

export function openPalette(): void {
  paletteOpen.update(() => true);
}

export function closePalette(): void {
  paletteOpen.update(() => false);
}
