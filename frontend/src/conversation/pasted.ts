/** The files in what somebody pastes. Pure. */

/** None where words were copied: programs for text and tables put a picture of them beside. */
export function filesIn({ files, types }: Pick<DataTransfer, "files" | "types">): File[] {
  const isWritten = types.includes("text/plain") && types.includes("text/html");
  return isWritten ? [] : [...files];
}
