/** The texts of linking accounts, in the reader's language. Only the settings import them. */
import { getLanguage } from "./index";
import type { LinkWords } from "./links.en";

export const linkWords: LinkWords =
  getLanguage() === "de" ? (await import("./links.de")).linksDe : (await import("./links.en")).linksEn;
