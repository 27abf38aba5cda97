/** Whether single keys are shortcuts. People who dictate, or press keys by accident, switch them off. */
import { storage } from "../lib/storage";
import { Store } from "../lib/store";

const STORAGE_KEY = "single-keys";

export const areSingleKeysOn = new Store(storage.get(STORAGE_KEY) !== "off");

export function setSingleKeys(isOn: boolean): void {
  storage.set(STORAGE_KEY, isOn ? null : "off");
  areSingleKeysOn.update(() => isOn);
}
