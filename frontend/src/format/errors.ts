/** The server's errors: in the page's own words, if it has some for their code, or else as the server says it. */
import { getLocale, words, type ErrorFacts, type ErrorTexts } from "../words";
import { formatBudgetFacts } from "./budgets";
import { formatBytes } from "./numbers";

type Facts = Readonly<Record<string, unknown>>;

const SIZE_FACT = "limit_bytes"; // the fact in which the server names the largest size it accepts

/** Explains an error in the page's own words for its code, or with the server's message. */
export function describeErrorCode(code: string, facts: Facts, message: string): string {
  const name = code === "request_rejected" && typeof facts.error === "string" ? facts.error : code;
  const cause = typeof facts.code === "string" ? facts.code : "";
  return findText(words.failures, cause, facts) ?? findText(words.errors, name, facts) ?? message;
}

/** Explains why a turn failed by the facts of its event; null if they say nothing. */
export function describeFailure(facts: Facts): string | null {
  const reason = typeof facts.reason === "string" ? facts.reason : null;
  const code = typeof facts.code === "string" ? facts.code : "";
  return findText(words.failures, code, facts) ?? findText(words.errors, code, facts) ?? reason;
}

/** The text of a notice about a turn. */
export function describeNotice(notice: { text: string; code: string; facts: Facts }): string {
  const { failure, ...facts } = notice.facts;
  const reason = isFacts(failure) ? describeFailure({ reason: facts.reason, ...failure }) : facts.reason;
  return findText(words.notices, notice.code, { ...facts, reason }) ?? notice.text;
}

function isFacts(value: unknown): value is Facts {
  return typeof value === "object" && value !== null;
}

function findText(texts: ErrorTexts, code: string, facts: Facts): string | null {
  return (Object.hasOwn(texts, code) ? texts[code]?.(formatFacts(facts)) : null) ?? null;
}

function formatFacts(facts: Facts): ErrorFacts {
  const texts = Object.entries(facts).flatMap(([name, value]): [string, string][] => {
    if (typeof value === "string") return [[name, value]];
    if (typeof value !== "number") return [];
    return [[name, name === SIZE_FACT ? formatBytes(value) : new Intl.NumberFormat(getLocale()).format(value)]];
  });
  return { ...Object.fromEntries(texts), ...formatBudgetFacts(facts) };
}
