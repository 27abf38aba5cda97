/** Syntax highlighting itself. Runs in a worker, because some languages take seconds for a short text that is not code. */
import highlighter from "highlight.js/lib/core";
import type { LanguageFn } from "highlight.js";

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

/** Highlighted code as HTML; null if its language is not known. Fails if the language cannot be loaded. */
export async function highlightNow(code: string, language: string, onLoaded?: () => void): Promise<string | null> {
  const name = ALIASES[language] ?? language;
  if (!(await loadLanguage(name))) return null;
  onLoaded?.();
  return highlighter.highlight(code, { language: name, ignoreIllegals: true }).value;
}

async function loadLanguage(name: string): Promise<boolean> {
  const load = Object.hasOwn(LANGUAGES, name) ? LANGUAGES[name] : undefined;
  if (load === undefined) return false;
  if (highlighter.getLanguage(name) === undefined) highlighter.registerLanguage(name, (await load()).default);
  return true;
}
