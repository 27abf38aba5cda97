/** Downloads of files that the server makes. */
import { baseUrl } from "../lib/baseUrl";

/** Lets the browser download a file of this server, whose URL may be relative; its name comes from the response. */
export function download(url: string): void {
  const link = document.createElement("a");
  link.href = new URL(url, baseUrl).href;
  link.download = "";
  link.click();
}
