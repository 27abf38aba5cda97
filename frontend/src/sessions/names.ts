/** The names under which the page shows conversations. Pure. */
import type { Session } from "../api/types";
import { words } from "../words";

const OWN_SURFACES = new Set(["web", "local", "api"]);

/**
 * A conversation without any text from a person has no title yet. On a chat platform it has the name of its chat, elsewhere its
 * last message as its name.
 */
export function getSessionName(session: Session): string {
  const title = session.title ?? session.auto_title;
  if (title) return title;
  if (OWN_SURFACES.has(session.platform)) return session.preview || words.untitled;
  return session.display_name || words.untitled;
}
