/** Plain text made from Markdown. Pure. */

/** Puts Markdown on one line, without its markup. */
export function stripMarkdown(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^\s*(?:>|[-*+]|\d+\.)\s+/gm, "")
    .replace(/(^|\s)#{1,6}\s+/g, "$1")
    .replace(/(\*\*|__|~~|`+)(\S.*?)\1/g, "$2")
    .replace(/\*(\S[^*]*)\*/g, "$1")
    .replace(/\s+/g, " ")
    .trim();
}
