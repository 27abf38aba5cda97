/** The names under which the page shows conversations. Pure. */
import type { Session } from "../api/types";
import { stripMarkdown } from "../format/text";
import { words } from "../words";

const OWN_SURFACES = new Set(["web", "local", "api"]);

/**
 * Without a title, a conversation on a chat platform has the name of its chat. One on the web, in the terminal or through the
 * API has its last message as its name.
 */
export function getSessionName(session: Session): string {
  if (session.title) return session.title;
  if (OWN_SURFACES.has(session.platform)) return stripMarkdown(session.preview) || words.untitled;
  return session.display_name || words.untitled;
}
