/** Which conversation somebody is about to share. */
import { Store } from "../../lib/store";

export const sharing = new Store<string | null>(null);

export function openSharing(session: string): void {
  sharing.update(() => session);
}

export function closeSharing(): void {
  sharing.update(() => null);
}
