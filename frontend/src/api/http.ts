/** HTTP requests to the server. Paths, parameters, bodies and responses have the types of `schema.ts`. */
import { baseUrl } from "../lib/baseUrl";
import { getLanguage } from "../words";
import { ApiError, UnreachableError } from "./errors";
import type { paths } from "./schema";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
type Path<M extends Method> = { [P in keyof paths]: paths[P] extends Record<Lowercase<M>, object> ? P : never }[keyof paths];
type Operation<M extends Method, P extends Path<M>> = paths[P][Lowercase<M> & keyof paths[P]];

type Parameters<O> = O extends { parameters: infer All } ? Pick<All, keyof All & ("path" | "query")> : never;
type Body<O> = O extends { requestBody: { content: infer Content } }
  ? { body: BodyOf<Content> }
  : O extends { requestBody?: { content: infer Content } }
    ? { body?: BodyOf<Content> }
    : never;
type BodyOf<Content> = Content extends { "application/json": infer Json } ? Json : Content extends { "multipart/form-data": object } ? FormData : never;
type Result<O> = O extends { responses: infer All } ? JsonOf<All[keyof All]> : never;
type JsonOf<Content> = Content extends { content: { "application/json": infer Json } } ? Json : undefined;

/** The query parameters of an operation. */
export type UrlQuery<M extends Method, P extends Path<M>> = Operation<M, P> extends { parameters: { query?: infer Query } } ? NonNullable<Query> : never;

interface Transfer {
  signal?: AbortSignal | undefined;
  headers?: Record<string, string>;
}

/** The last argument of a function. It may be left out if nothing in it is required. */
type Options<T> = object extends T ? [options?: T] : [options: T];
type UrlOptions<M extends Method, P extends Path<M>> = Options<Parameters<Operation<M, P>>>;
type RequestOptions<M extends Method, P extends Path<M>> = Options<Parameters<Operation<M, P>> & Body<Operation<M, P>> & Transfer>;

type UrlValue = string | number | boolean | null | undefined;

interface UrlValues {
  path?: object | undefined;
  query?: object | undefined;
}

interface RequestValues extends UrlValues, Transfer {
  body?: unknown;
  cache?: RequestCache;
}

type Listener = () => void;
const signedOutListeners = new Set<Listener>();

/** Calls `listener` when the server says that this browser is not signed in. Returns a function that removes it. */
export function onSignedOut(listener: Listener): () => void {
  signedOutListeners.add(listener);
  return () => signedOutListeners.delete(listener);
}

/** Builds the URL of an operation. Empty and false query parameters are left out. */
export function buildUrl<M extends Method, P extends Path<M>>(method: M, path: P, ...options: UrlOptions<M, P>): string;
export function buildUrl(_method: Method, path: string, options: UrlValues = {}): string {
  return joinUrl(path, options);
}

/** Returns the body of the response. Throws an `ApiError` or an `UnreachableError`. */
export function request<M extends Method, P extends Path<M>>(
  method: M,
  path: P,
  ...options: RequestOptions<M, P>
): Promise<Result<Operation<M, P>>>;
export async function request(method: Method, path: string, options: RequestValues = {}): Promise<unknown> {
  const response = await send(method, path, options);
  return response.status === 204 ? undefined : await readBody(response, options.signal);
}

/** Returns the response as soon as it starts, if its body is not JSON. Throws what `request` throws. */
export function openResponse<M extends Method, P extends Path<M>>(method: M, path: P, ...options: RequestOptions<M, P>): Promise<Response>;
export function openResponse(method: Method, path: string, options: RequestValues = {}): Promise<Response> {
  return send(method, path, options);
}

/** Opens a response of server-sent events, and returns a reader of their text. Throws what `request` throws. */
export function openEventStream<M extends Method, P extends Path<M>>(
  method: M,
  path: P,
  ...options: RequestOptions<M, P>
): Promise<ReadableStreamDefaultReader<string>>;
export async function openEventStream(method: Method, path: string, options: RequestValues = {}): Promise<ReadableStreamDefaultReader<string>> {
  const { body } = await send(method, path, { ...options, headers: { Accept: "text/event-stream", ...options.headers }, cache: "no-store" });
  if (body === null) throw new UnreachableError("the answer has no body");
  return body.pipeThrough(new TextDecoderStream()).getReader();
}

function joinUrl(path: string, { path: names = {}, query = {} }: UrlValues): string {
  const filled = Object.entries(names as Record<string, UrlValue>).reduce(
    (rest, [name, value]) => rest.replace(`{${name}}`, () => encodeURIComponent(String(value))),
    path,
  );
  const url = new URL(filled.slice(1), baseUrl);
  for (const [key, values] of Object.entries(query) as [string, UrlValue | UrlValue[]][]) {
    for (const value of Array.isArray(values) ? values : [values]) {
      if (value !== null && value !== undefined && value !== false) url.searchParams.append(key, String(value));
    }
  }
  return url.href;
}

/** Sends a request, in the reader's language, and waits for the start of its response. */
async function send(method: Method, path: string, { path: names, query, body, headers, signal, ...transfer }: RequestValues): Promise<Response> {
  const isJson = body !== undefined && !(body instanceof FormData);
  const response = await fetchOrThrow(joinUrl(path, { path: names, query }), {
    method,
    credentials: "same-origin",
    headers: { "Accept-Language": getLanguage(), ...headers, ...(isJson && { "Content-Type": "application/json" }) },
    body: isJson ? JSON.stringify(body) : (body ?? null),
    signal: signal ?? null,
    ...transfer,
  });
  if (!response.ok) throw await readError(response);
  return response;
}

async function fetchOrThrow(url: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new UnreachableError("the server cannot be reached");
  }
}

async function readBody(response: Response, signal: AbortSignal | undefined): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new UnreachableError("the answer was cut off");
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
