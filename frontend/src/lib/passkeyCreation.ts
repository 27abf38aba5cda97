/** Creating a passkey, in the JSON form that the server uses. */

interface JsonCreation {
  parseCreationOptionsFromJSON?: (options: unknown) => PublicKeyCredentialCreationOptions;
}

/** Whether the browser can create a passkey here; that needs HTTPS and a host name. */
export function canCreatePasskeys(): boolean {
  return window.isSecureContext && !isIpAddress() && typeof PublicKeyCredential === "function" && getJsonCreation().parseCreationOptionsFromJSON !== undefined;
}

/** Asks the person's authenticator for a new passkey, and returns it as JSON; null if the person canceled. */
export async function createPasskey(options: Record<string, unknown>): Promise<Record<string, unknown> | null> {
  const publicKey = getJsonCreation().parseCreationOptionsFromJSON?.(options.publicKey ?? options);
  if (publicKey === undefined) return null;
  try {
    const credential = await navigator.credentials.create({ publicKey });
    return credential instanceof PublicKeyCredential ? (credential.toJSON() as Record<string, unknown>) : null;
  } catch (error) {
    if (error instanceof DOMException) return null; // canceled, or the device already has one
    throw error;
  }
}

/** Passkeys belong to host names, so a bare IP address cannot have any. */
function isIpAddress(): boolean {
  return /^[\d.]+$|:/.test(location.hostname);
}

function getJsonCreation(): JsonCreation {
  return PublicKeyCredential as unknown as JsonCreation;
}
