/** Reads the text, files and tool calls of a message. Accepts any content that a log may hold, and never throws. Pure. */

export interface FilePart {
  id: string;
  name: string;
  media_type: string;
  size: number;
  transcript?: string | undefined; // the words of a recording
  transcriptError?: string | undefined; // why that is not known
}

interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

type Content = string | readonly unknown[] | null;

export function readText(content: Content): string {
  if (content === null) return "";
  if (typeof content === "string") return content;
  return content
    .map((part) => (typeof part === "string" ? part : readPartText(part)))
    .filter((text) => text !== "")
    .join("\n\n");
}

type Part = string | Record<string, unknown>;

/** Returns the content with another text and the same files. */
export function replaceText(content: Content, text: string): string | Part[] {
  if (content === null || typeof content === "string") return text;
  const files = content.filter(isRecord).filter((part) => readPartText(part) === "");
  return text === "" ? files : [{ type: "text", text }, ...files];
}

export function readFiles(content: Content): FilePart[] {
  if (content === null || typeof content === "string") return [];
  return content.filter(isRecord).flatMap((part) => {
    if (part.type !== "attachment" || typeof part.id !== "string") return [];
    return [
      {
        id: part.id,
        name: toText(part.name) || "file",
        media_type: toText(part.media_type),
        size: typeof part.size === "number" ? part.size : 0,
        transcript: toText(part.transcript) || undefined,
        transcriptError: toText(part.transcript_error) || undefined,
      },
    ];
  });
}

export function readToolCalls(calls: readonly unknown[] | null | undefined): ToolCall[] {
  return (calls ?? []).filter(isRecord).map((call) => {
    const tool = isRecord(call.function) ? call.function : call;
    const args = tool.arguments;
    return {
      id: toText(call.id),
      name: toText(tool.name),
      arguments: typeof args === "string" ? args : JSON.stringify(args ?? {}),
    };
  });
}

function readPartText(part: unknown): string {
  return isRecord(part) ? toText(part.text) : "";
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
