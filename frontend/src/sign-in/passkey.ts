/** Passkeys, in the shape the server speaks of them. */

interface JsonCredentials {
  parseRequestOptionsFromJSON?: (options: unknown) => PublicKeyCredentialRequestOptions;
}

/** Whether this browser can use them here; they need a secure page. */
export function canUsePasskeys(): boolean {
  return window.isSecureContext && typeof PublicKeyCredential === "function" && json().parseRequestOptionsFromJSON !== undefined;
}

/** Ask the person's authenticator; its answer as JSON. */
export async function passkeyAnswer(options: Record<string, unknown>): Promise<unknown> {
  const publicKey = json().parseRequestOptionsFromJSON?.(options.publicKey ?? options);
  if (publicKey === undefined) throw new Error("this browser has no passkeys");
  const credential = await navigator.credentials.get({ publicKey });
  if (!(credential instanceof PublicKeyCredential)) throw new Error("no passkey was chosen");
  return credential.toJSON();
}

function json(): JsonCredentials {
  return PublicKeyCredential as unknown as JsonCredentials;
}
