/** Whether the server has another version of the page than the one that is open. */
import { baseUrl } from "./baseUrl";

export async function isPageOutdated(): Promise<boolean> {
  const scripts = [...document.querySelectorAll<HTMLScriptElement>("script[type=module][src]")];
  try {
    const response = await fetch(baseUrl, { cache: "no-cache" });
    const text = await response.text();
    return response.ok && scripts.some(({ src }) => !text.includes(src.slice(src.lastIndexOf("/")))); // their names have hashes
  } catch {
    return false; // the server can't be reached
  }
}
