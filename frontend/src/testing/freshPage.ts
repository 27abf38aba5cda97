/**
 * Runs before each file of tests. All files of a worker share one DOM, because making it takes longer than most files; here
 * they get fresh modules, storage and timers, an empty page, and the English texts.
 */
import { vi } from "vitest";

vi.useRealTimers();
vi.unstubAllGlobals();
vi.restoreAllMocks();
vi.resetModules();
localStorage.clear();
sessionStorage.clear();
document.head.replaceChildren();
document.body.replaceChildren();
document.documentElement.removeAttribute("lang");
history.replaceState(null, "", "/");

const { loadWords } = await import("../words");
await loadWords();
