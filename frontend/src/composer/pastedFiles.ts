/** The files in pasted data. Pure. */

/** Returns no files for copied text: word processors and spreadsheets add an image of it. */
export function readPastedFiles({ files, types }: Pick<DataTransfer, "files" | "types">): File[] {
  const isText = types.includes("text/plain") && types.includes("text/html");
  return isText ? [] : [...files];
}
