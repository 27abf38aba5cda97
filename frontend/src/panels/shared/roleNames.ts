/** The names of roles. */
import { words } from "../../words";
import type { Role } from "./calls";

export function getRoleName(role: Role): string {
  return { owner: words.roleOwner, member: words.roleMember, guest: words.roleGuest }[role];
}
