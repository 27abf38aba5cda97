/**
 * The two ways in which a request can fail, and what the page says about them.
 *
 * Always true: an `ApiError` is an answer of the server and final. After an `UnreachableError` the page does not know
 * whether the request arrived, so it repeats only what may be repeated.
 */
import { describeErrorCode } from "../format/errors";
import { words } from "../words";
import type { Receipt } from "./types";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly facts: Record<string, unknown>,
  ) {
    super(message);
  }
}

export class UnreachableError extends Error {}

/** Explains why a request, or something that the browser was to do, failed. */
export function describeError(error: unknown): string {
  if (error instanceof ApiError) return describeErrorCode(error.code, error.facts, error.message);
  const isOfBrowser = error instanceof Error && !(error instanceof UnreachableError) && error.message !== "";
  return isOfBrowser ? words.browserError(error.message) : words.unreachable;
}

/** Explains why the server did not accept a message or a command. */
export function describeRejection({ facts, reply }: Receipt): string {
  return describeErrorCode("request_rejected", facts, reply ?? "");
}
