/** Downloads of files that the server makes. */
import { buildUrl } from "./http";

/** Lets the browser download a file of this server; its name comes from the response. */
export function download(path: string): void {
  const link = document.createElement("a");
  link.href = buildUrl(path);
  link.download = "";
  link.click();
}
