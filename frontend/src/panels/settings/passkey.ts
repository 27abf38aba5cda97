/** Making a passkey, in the shape the server speaks of them. */

interface JsonCreation {
  parseCreationOptionsFromJSON?: (options: unknown) => PublicKeyCredentialCreationOptions;
}

/** Whether this browser can make one here; they need a secure page with a name. */
export function canMakePasskeys(): boolean {
  return window.isSecureContext && !isAddress() && typeof PublicKeyCredential === "function" && json().parseCreationOptionsFromJSON !== undefined;
}

/** Let the person's authenticator make one; what it answers, as JSON. Null where the person would rather not. */
export async function madePasskey(options: Record<string, unknown>): Promise<unknown> {
  const publicKey = json().parseCreationOptionsFromJSON?.(options.publicKey ?? options);
  if (publicKey === undefined) return null;
  try {
    const credential = await navigator.credentials.create({ publicKey });
    return credential instanceof PublicKeyCredential ? credential.toJSON() : null;
  } catch (error) {
    if (error instanceof DOMException) return null; // declined, or the device has one already
    throw error;
  }
}

/** Passkeys belong to names of hosts; a bare address has none. */
function isAddress(): boolean {
  return /^[\d.]+$|:/.test(location.hostname);
}

function json(): JsonCreation {
  return PublicKeyCredential as unknown as JsonCreation;
}
