/** The texts of the screens that set up the server, in the reader's language. Only those screens import them. */
import { getLanguage } from "./index";
import type { SetupWords } from "./setup.en";

export const setupWords: SetupWords =
  getLanguage() === "de" ? (await import("./setup.de")).setupDe : (await import("./setup.en")).setupEn;
