/** Passkeys, in the shape the server speaks of them. */

interface JsonCredentials {
  parseRequestOptionsFromJSON?: (options: unknown) => PublicKeyCredentialRequestOptions;
}

/** Whether this browser can use them here; they need a secure page. */
export function canUsePasskeys(): boolean {
  return window.isSecureContext && typeof PublicKeyCredential === "function" && json().parseRequestOptionsFromJSON !== undefined;
}

/** The person would rather not, or their device has none for this page. */
export class NoPasskey extends Error {}

/** Ask the person's authenticator; its answer as JSON. */
export async function passkeyAnswer(options: Record<string, unknown>): Promise<unknown> {
  const publicKey = json().parseRequestOptionsFromJSON?.(options.publicKey ?? options);
  const credential = publicKey && (await navigator.credentials.get({ publicKey }).catch(declined));
  if (!(credential instanceof PublicKeyCredential)) throw new NoPasskey("no passkey was used");
  return credential.toJSON();
}

function declined(error: unknown): null {
  if (error instanceof DOMException) return null;
  throw error;
}

function json(): JsonCredentials {
  return PublicKeyCredential as unknown as JsonCredentials;
}
