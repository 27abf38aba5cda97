/** Describes a memory: where it is from, since when, and who knows it. Pure, except for the language. */
import { formatRecent } from "../../format/time";
import { getLocale, words } from "../../words";
import type { Memory } from "../shared/calls";

/** Joins names: Ada, Bob, and Carol. */
export function joinNames(names: readonly string[]): string {
  return new Intl.ListFormat(getLocale(), { type: "conjunction" }).format(names);
}

/** Describes who knows a memory besides the reader. */
export function describeAudience({ shared, other_names: others, other_count }: Memory): string {
  if (!shared) return words.memoryPrivate;
  if (other_count === 0) return words.memorySharedWithChat;
  const names = others.map(nameOrUnknown);
  const more = other_count - names.length;
  return words.memorySharedWith(joinNames(more > 0 ? [...names, words.memoryMorePeople(more)] : names));
}

/** Describes how a memory came about: the person who wrote it, or that the agent did. */
export function describeOrigin({ origin, author_name, is_author }: Memory): string {
  if (origin === "person") return is_author ? words.memoryYou : nameOrUnknown(author_name);
  const name = is_author ? null : nameOrUnknown(author_name);
  return origin === "agent" ? words.memoryByAgent(name) : words.memoryLearned(name);
}

/** Not every platform reports the names of people. */
function nameOrUnknown(name: string | null): string {
  return name === null || name === "" ? words.memoryUnknownPerson : name;
}

export function describeMemory(memory: Memory, now = Date.now()): string {
  return `${describeOrigin(memory)} · ${formatRecent(memory.created_at, now)} · ${describeAudience(memory)}`;
}
