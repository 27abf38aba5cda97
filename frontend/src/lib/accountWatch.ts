/**
 * Notices when another tab of this browser signs in as another person.
 *
 * All tabs share one session cookie. After another person has signed in, whatever an older tab still sends would be done in
 * that person's name, so the older tab has to reload.
 */
import { storage } from "./storage";

const STORAGE_KEY = "person";

/**
 * Announces who is signed in in this tab (null: no one), and calls `onChange` when another tab announces another person.
 * Returns a function that stops watching.
 */
export function watchAccount(personId: string | null, onChange: () => void): () => void {
  storage.set(STORAGE_KEY, personId);
  const onStorage = () => {
    if (storage.get(STORAGE_KEY) !== personId) onChange();
  };
  window.addEventListener("storage", onStorage);
  return () => window.removeEventListener("storage", onStorage);
}
