/** What is said about a memory: who asked for it, when, and among whom it is known. Pure but for the language. */
import { ago } from "../../lib/time";
import { locale, words } from "../../words";
import type { Memory } from "../calls";

/** Several names as people say them together. */
export function listOf(names: readonly string[]): string {
  return new Intl.ListFormat(locale(), { type: "conjunction" }).format(names);
}

/** Those who know it besides the reader. */
export function circleOf({ shared, others, other_count }: Memory): string {
  if (!shared) return words.memoryMine;
  if (other_count === 0) return words.memorySharedPlace;
  const named = others.map(nameOf);
  const more = other_count - named.length;
  return words.memorySharedWith(listOf(more > 0 ? [...named, words.memoryMore(more)] : named));
}

export function askerOf({ asked_by, asked_by_me }: Memory): string {
  return asked_by_me ? words.memoryYou : nameOf(asked_by);
}

/** Not every platform says what people are called. */
function nameOf(name: string | null): string {
  return name === null || name === "" ? words.memorySomebody : name;
}

export function factsOf(memory: Memory, now = Date.now()): string {
  return `${askerOf(memory)} · ${ago(memory.created_at, now)} · ${circleOf(memory)}`;
}
