/**
 * Limits how long Markdown may take, because some short texts take a parser minutes.
 *
 * JavaScript cannot be interrupted from outside, so the parser calls `checkBudget` at every step. A step takes
 * microseconds. One that takes longer met a pause of the whole browser, for which the text is not to blame.
 */
const MAX_PARSE_MS = 400; // ordinary messages take a few milliseconds
const MAX_STEP_MS = 1;

let remainingMs = Number.POSITIVE_INFINITY;
let lastStep = 0;

class BudgetExceeded extends Error {}

/** Returns the result of `parse`; null if it takes too long or nests too deeply for the stack. */
export function runWithinBudget<Result>(parse: () => Result): Result | null {
  remainingMs = MAX_PARSE_MS;
  lastStep = performance.now();
  try {
    return parse();
  } catch (error) {
    if (error instanceof BudgetExceeded || error instanceof RangeError) return null;
    throw error;
  } finally {
    remainingMs = Number.POSITIVE_INFINITY;
  }
}

export function checkBudget(): void {
  const now = performance.now();
  remainingMs -= Math.min(now - lastStep, MAX_STEP_MS);
  lastStep = now;
  if (remainingMs < 0) throw new BudgetExceeded();
}
