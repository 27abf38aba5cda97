/** The names of languages after the fence of a code block. Pure. */
export const DIAGRAM_LANGUAGE = "mermaid";

/** The language that a code block names after its fence; empty if it names none. */
export function readLanguage(info: string | undefined): string {
  return /^[\w+#.-]+/.exec(info ?? "")?.[0].toLowerCase() ?? "";
}
