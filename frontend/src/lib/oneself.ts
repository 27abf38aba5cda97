/**
 * Who uses this browser, as all its tabs know it.
 *
 * The cookie is one for all tabs: when somebody else has signed in with one of them, what another still shows and sends
 * would be done in their name. So that one begins anew.
 */
import { keep, recall } from "./keep";

const WHO = "person";

/** This tab is somebody's, or nobody's; ends with the function it gives. */
export function beOneself(person: string | null, onOther: () => void = () => location.reload()): () => void {
  keep(WHO, person);
  const onStorage = () => {
    if (recall(WHO) !== person) onOther();
  };
  window.addEventListener("storage", onStorage);
  return () => window.removeEventListener("storage", onStorage);
}
