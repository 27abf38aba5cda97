/** A text with marked places, as parts. Pure. */

interface MarkedPart {
  text: string;
  isMarked: boolean;
}

/** Places count characters as Python does: a sign outside the basic plane is one. */
export function marked(text: string, marks: readonly (readonly number[])[]): MarkedPart[] {
  const signs = Array.from(text);
  const parts: MarkedPart[] = [];
  let done = 0;
  for (const [from = 0, to = 0] of marks) {
    if (from > done) parts.push({ text: signs.slice(done, from).join(""), isMarked: false });
    parts.push({ text: signs.slice(Math.max(from, done), to).join(""), isMarked: true });
    done = Math.max(done, to);
  }
  if (done < signs.length) parts.push({ text: signs.slice(done).join(""), isMarked: false });
  return parts;
}
