/** What the server reports about a turn, by code: why it failed, and notices while it runs. Null: the server's own text is shown. */
import { nameBudgetEn } from "./budgets.en";
import type { ErrorFacts, ErrorTexts } from "./index";

export const failuresEn = {
  too_long_for_model: ({ model }) => `This conversation is too long for ${model}. Compact it or start a new one.`,
  rate_limited: ({ provider_title, seconds }) =>
    seconds === undefined
      ? `Rate limit reached at ${provider_title}. Try again later.`
      : `Rate limit reached at ${provider_title}. Try again in ${seconds === "1" ? "1 second" : `${seconds} seconds`}.`,
  no_credit: ({ provider_title }) => `Your account at ${provider_title} has no credit left. See its billing page.`,
  key_missing: () => null, // the server's text names the setting
  key_rejected: () => null,
  unknown_model: () => null,
  request_rejected_by_provider: ({ provider_title }) => `${provider_title} rejected the request.`,
  content_filtered: ({ provider_title }) => `The content filter of ${provider_title} blocked the answer.`,
  empty_answer: ({ model }) => `${model} gave an empty answer. Try again or rephrase your message.`,
  provider_timed_out: ({ provider_title }) => `${provider_title} did not respond in time.`,
  cannot_connect: ({ provider_title, provider }) =>
    provider === "ollama" ? "Could not connect to Ollama. Is it running?" : `Could not connect to ${provider_title}.`,
  connection_dropped: ({ provider_title }) => `The connection to ${provider_title} dropped.`,
  provider_unavailable: ({ provider_title, status }) => `${provider_title} is unavailable at the moment (HTTP ${status}).`,
  invalid_response: ({ provider_title }) => `${provider_title} sent an incomplete or invalid response.`,
  dropped_mid_answer: ({ provider_title }) => `The connection to ${provider_title} dropped mid-answer. The text so far is saved.`,
  stalled_mid_answer: ({ provider_title }) => `${provider_title} stopped responding mid-answer. The text so far is saved.`,
  budget_exceeded: (facts) => `${explainLimit(facts)} It resets ${facts.resets_at}.`,
  price_unknown: () => null, // the server's text names the setting
  no_models: () => null,
  address_invalid: () => null,
  address_missing: () => null,
  packages_missing: () => null,
  internal_turn_error: ({ error }) => `Internal error in Palaver (${error}). The server log has details.`,
} satisfies ErrorTexts;

export const noticesEn = {
  summarizing: () => "Summarizing older messages…",
  nearly_full: () => "This conversation nearly filled the model’s context, so the agent now sees a summary of it.",
  summarized: () => "This conversation was too long for the model, so the agent now sees a summary of it.",
  omitted: () => "This conversation was too long for the model, so the agent no longer sees its oldest messages.",
  shortened: () => "A message was too long for the model, so the agent sees a shortened version of it.",
  oldest_not_seen: ({ count }) =>
    `The conversation is too long for the local model, so the agent did not see the oldest ${count === "1" ? "message" : `${count} messages`}.`,
  tool_limit: ({ count }) => `The agent used tools ${count} times in a row, so it has to answer now.`,
  cut_off: () => "The answer was cut off because it reached the maximum length.",
  fallback_used: ({ reason, model, instead_of }) => `${reason} Using ${model} instead of ${instead_of}.`,
  mcp_unavailable: () => null, // the server's text names the setting
  profile_missing: ({ name }) => `The profile “${name}” no longer exists, so the default is used.`,
  personality_missing: ({ name }) => `The personality “${name}” no longer exists, so none is used.`,
  budget_nearly_used: (facts) => {
    const amounts = facts.used === undefined ? "" : ` (${facts.used} of ${facts.limit})`;
    return `${capitalize(nameBudgetEn(facts.scope, facts.period, facts.subject))} is ${facts.percent}% used${amounts}. It resets ${facts.resets_at}.`;
  },
  answer_limited: () => "Little of the budget is left, so answers have to be shorter.",
  model_not_allowed: ({ model }) => `The model ${model} is not available to you, so the default is used.`,
} satisfies ErrorTexts;

function explainLimit({ scope, period, subject, used, limit, remaining }: ErrorFacts): string {
  const name = capitalize(nameBudgetEn(scope, period, subject));
  if (remaining !== undefined) return `${name} has only ${remaining} left, too little for this answer.`;
  return used === undefined ? `${name} is used up.` : `${name} is used up: ${used} of ${limit}.`;
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
