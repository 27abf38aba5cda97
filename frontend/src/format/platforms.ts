/** The names of platforms in the reader's language. */
import { words } from "../words";

export function getPlatformName(platform: string): string {
  return words.platforms[platform] ?? platform;
}
