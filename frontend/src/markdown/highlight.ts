/** Syntax highlighting. A language is loaded when code in it is first shown. */
import type { HLJSApi, LanguageFn } from "highlight.js";

type LanguageLoader = () => Promise<{ default: LanguageFn }>;

const LANGUAGES: Record<string, LanguageLoader> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  elixir: () => import("highlight.js/lib/languages/elixir"),
  go: () => import("highlight.js/lib/languages/go"),
  haskell: () => import("highlight.js/lib/languages/haskell"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  nginx: () => import("highlight.js/lib/languages/nginx"),
  perl: () => import("highlight.js/lib/languages/perl"),
  php: () => import("highlight.js/lib/languages/php"),
  powershell: () => import("highlight.js/lib/languages/powershell"),
  python: () => import("highlight.js/lib/languages/python"),
  r: () => import("highlight.js/lib/languages/r"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  scala: () => import("highlight.js/lib/languages/scala"),
  scss: () => import("highlight.js/lib/languages/scss"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const ALIASES: Record<string, string> = {
  "c#": "csharp", "c++": "cpp", cc: "cpp", cs: "csharp", docker: "dockerfile", ex: "elixir", golang: "go", h: "c",
  hpp: "cpp", hs: "haskell", html: "xml", js: "javascript", json5: "json", jsonc: "json", jsx: "javascript",
  kt: "kotlin", make: "makefile", md: "markdown", mjs: "javascript", patch: "diff", pl: "perl", ps1: "powershell",
  py: "python", python3: "python", rb: "ruby", rs: "rust", sh: "bash", shell: "bash", console: "bash", svg: "xml",
  toml: "ini", ts: "typescript", tsx: "typescript", vue: "xml", yml: "yaml", zsh: "bash",
};

const MAX_CODE_CHARS = 30_000; // highlighting more would block the page
let highlighter: HLJSApi | null = null;
const registrations = new Map<string, Promise<void>>();

/** Highlighted code as HTML; null if its language is not loaded, not known, or the code is too long. */
export function highlightCode(code: string, language: string): string | null {
  const name = ALIASES[language] ?? language;
  if (highlighter?.getLanguage(name) === undefined || code.length > MAX_CODE_CHARS) return null;
  return highlighter.highlight(code, { language: name, ignoreIllegals: true }).value;
}

/** Loads a language, and returns whether that worked. After a failure the next code in that language tries again. */
export async function loadLanguage(language: string): Promise<boolean> {
  const name = ALIASES[language] ?? language;
  const load = LANGUAGES[name];
  if (load === undefined) return false;
  let registration = registrations.get(name);
  if (registration === undefined) registrations.set(name, (registration = registerLanguage(name, load)));
  try {
    await registration;
    return true;
  } catch {
    registrations.delete(name);
    return false;
  }
}

async function registerLanguage(name: string, load: LanguageLoader): Promise<void> {
  const [core, language] = await Promise.all([import("highlight.js/lib/core"), load()]);
  core.default.registerLanguage(name, language.default);
  highlighter = core.default;
}
