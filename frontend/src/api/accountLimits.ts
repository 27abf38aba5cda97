/** What the server accepts as a name and as a password. */
export const MAX_NAME_CHARS = 60;
export const MIN_PASSWORD_CHARS = 8;
export const MAX_PASSWORD_CHARS = 256;
