/** What a message holds: words, files, calls of tools. Reads whatever shape a log has, and never throws. Pure. */

export interface FilePart {
  id: string;
  name: string;
  type: string;
  size: number;
}

interface Called {
  id: string;
  name: string;
  arguments: string;
}

type Content = string | readonly unknown[] | null;

/** The words of a message. */
export function textOf(content: Content): string {
  if (content === null) return "";
  if (typeof content === "string") return content;
  return content
    .map((part) => (typeof part === "string" ? part : textIn(part)))
    .filter((text) => text !== "")
    .join("\n\n");
}

/** The files of a message. */
export function filesOf(content: Content): FilePart[] {
  if (content === null || typeof content === "string") return [];
  return content.filter(isRecord).flatMap((part) => {
    if (part.type !== "attachment" || typeof part.id !== "string") return [];
    return [
      {
        id: part.id,
        name: text(part.name) || "file",
        type: text(part.media_type),
        size: typeof part.size === "number" ? part.size : 0,
      },
    ];
  });
}

/** The calls of tools in a message. */
export function callsOf(calls: readonly unknown[] | null | undefined): Called[] {
  return (calls ?? []).filter(isRecord).map((call) => {
    const called = isRecord(call.function) ? call.function : call;
    const given = called.arguments;
    return {
      id: text(call.id),
      name: text(called.name),
      arguments: typeof given === "string" ? given : JSON.stringify(given ?? {}),
    };
  });
}

function textIn(part: unknown): string {
  return isRecord(part) ? text(part.text) : "";
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
