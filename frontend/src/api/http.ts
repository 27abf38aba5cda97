/** HTTP requests to the server. Every request goes through `request`, except the live stream and downloads. */
import { baseUrl } from "../lib/baseUrl";
import { getLanguage } from "../words";
import { ApiError, UnreachableError } from "./errors";

type Query = Record<string, string | number | boolean | null | undefined>;

export interface RequestOptions {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
}

type Listener = () => void;
const signedOutListeners = new Set<Listener>();

/** Calls `listener` when the server says that this browser is not signed in. Returns a function that removes it. */
export function onSignedOut(listener: Listener): () => void {
  signedOutListeners.add(listener);
  return () => signedOutListeners.delete(listener);
}

/** Builds a URL below the base URL. Empty and false query parameters are left out. */
export function buildUrl(path: string, query: Query = {}): string {
  const url = new URL(path.replace(/^\//, ""), baseUrl);
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== false) url.searchParams.append(key, String(value));
  }
  return url.href;
}

/** Returns the body of the answer. Throws an `ApiError` or an `UnreachableError`. */
export async function request<T>(method: string, path: string, { query, body, signal }: RequestOptions = {}): Promise<T> {
  const isForm = body instanceof FormData;
  const response = await fetchResponse(buildUrl(`api${path}`, query), {
    method,
    ...(signal && { signal }),
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    ...(body !== undefined && !isForm && { headers: { "Content-Type": "application/json" } }),
  });
  if (!response.ok) throw await readError(response);
  return (response.status === 204 ? undefined : await readBody(response, signal)) as T;
}

async function readBody(response: Response, signal: AbortSignal | undefined): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new UnreachableError("the answer was cut off");
  }
}

/** Sends a request, in the reader's language, and waits for the start of its answer. */
export async function fetchResponse(url: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { credentials: "same-origin", ...options, headers: { "Accept-Language": getLanguage(), ...options.headers } });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new UnreachableError("the server cannot be reached");
  }
}

/** Builds the error for an answer with an error status. A proxy answers 502 and above when it cannot reach the server. */
export async function readError(response: Response): Promise<Error> {
  const body: unknown = await response.json().catch(() => null);
  const error = isErrorBody(body) ? body.error : null;
  if (error === null && response.status >= 502) return new UnreachableError("the server cannot be reached");
  if (response.status === 401 && error?.code === "not_signed_in") for (const listener of signedOutListeners) listener();
  return new ApiError(
    response.status,
    error?.code ?? "unknown",
    error?.message ?? `HTTP ${response.status} ${response.statusText}`.trim(),
    error?.facts ?? {},
  );
}

interface ErrorBody {
  error: { code: string; message: string; facts: Record<string, unknown> };
}

function isErrorBody(body: unknown): body is ErrorBody {
  return typeof body === "object" && body !== null && "error" in body;
}
