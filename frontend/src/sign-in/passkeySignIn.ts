/** Signing in with a passkey, in the JSON form that the server uses. */

interface JsonCredentials {
  parseRequestOptionsFromJSON?: (options: unknown) => PublicKeyCredentialRequestOptions;
}

/** Whether the browser supports passkeys here; they need HTTPS. */
export function canUsePasskeys(): boolean {
  return window.isSecureContext && typeof PublicKeyCredential === "function" && getJsonRequest().parseRequestOptionsFromJSON !== undefined;
}

/** The person canceled, or their device has no passkey for this page. */
export class PasskeyDeclinedError extends Error {}

/** Asks the person's authenticator, and returns its answer as JSON. */
export async function requestPasskey(options: Record<string, unknown>): Promise<Record<string, unknown>> {
  const publicKey = getJsonRequest().parseRequestOptionsFromJSON?.(options.publicKey ?? options);
  const credential = publicKey && (await navigator.credentials.get({ publicKey }).catch(returnNullIfDeclined));
  if (!(credential instanceof PublicKeyCredential)) throw new PasskeyDeclinedError("no passkey was used");
  return credential.toJSON() as Record<string, unknown>;
}

function returnNullIfDeclined(error: unknown): null {
  if (error instanceof DOMException) return null;
  throw error;
}

function getJsonRequest(): JsonCredentials {
  return PublicKeyCredential as unknown as JsonCredentials;
}
