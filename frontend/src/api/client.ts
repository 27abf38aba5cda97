/**
 * Asking the server: one function for every request, and the two ways in which one can fail.
 *
 * Always true: an `ApiError` is an answer of the server and final; `Unreachable` means that nobody knows whether the
 * request arrived, so only what may be repeated is repeated.
 */

// Scripts lie in `assets/`, one step below the place the page is served from, whatever a proxy calls that place.
const script = import.meta.url;
export const home = import.meta.env.DEV ? new URL("/", location.href) : new URL("../", script);

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

export class Unreachable extends Error {}

type Query = Record<string, string | number | boolean | null | undefined>;

export interface Asking {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
}

type Listener = () => void;
const signedOut = new Set<Listener>();

/** Be told when the server no longer knows who we are. */
export function onSignedOut(listener: Listener): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

/** The address of something the server has. */
export function address(path: string, query: Query = {}): string {
  const url = new URL(path.replace(/^\//, ""), home);
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== false) url.searchParams.append(key, String(value));
  }
  return url.href;
}

/** Ask for something; its answer, or an error. */
export async function ask<T>(method: string, path: string, { query, body, signal }: Asking = {}): Promise<T> {
  const isForm = body instanceof FormData;
  const response = await reach(address(`api${path}`, query), {
    method,
    ...(signal && { signal }),
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    ...(body !== undefined && !isForm && { headers: { "Content-Type": "application/json" } }),
  });
  if (!response.ok) throw await refusal(response);
  return (response.status === 204 ? undefined : await wholeOf(response, signal)) as T;
}

/** What an answer says, if it came to its end. */
async function wholeOf(response: Response, signal: AbortSignal | undefined): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable("the answer was cut");
  }
}

/** Send a request and wait for the beginning of its answer. */
export async function reach(url: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Unreachable("the server cannot be reached");
  }
}

/** The error that an answer stands for. */
export async function refusal(response: Response): Promise<Error> {
  const said: unknown = await response.json().catch(() => null);
  const error = isRefusal(said) ? said.error : null;
  if (error === null && response.status >= 502) return new Unreachable("the server cannot be reached");
  if (response.status === 401 && error?.code === "not_signed_in") for (const listener of signedOut) listener();
  return new ApiError(
    response.status,
    error?.code ?? "unknown",
    error?.message ?? `HTTP ${response.status} ${response.statusText}`.trim(),
    error?.facts ?? {},
  );
}

interface Refusal {
  error: { code: string; message: string; facts: Record<string, unknown> };
}

function isRefusal(said: unknown): said is Refusal {
  return typeof said === "object" && said !== null && "error" in said;
}
