/** The requests about signing in and about one's own account, which the first page does not need. */
import { request } from "./http";
import type { Schemas } from "./types";

export const getSignInMethods = () => request("GET", "/api/sign-in");
export const signInByLink = (token: string) => request("POST", "/api/sign-in/link", { body: { token } });
export const signInByPassword = (name: string, password: string) => request("POST", "/api/sign-in/password", { body: { name, password } });
export const getPasskeyOptions = () => request("POST", "/api/sign-in/passkey/options");
export const signInByPasskey = (credential: Schemas["PasskeySignInIn"]["credential"]) =>
  request("POST", "/api/sign-in/passkey", { body: { credential } });

export const finishWelcome = () => request("POST", "/api/me/welcome");
export const renameMe = (name: string) => request("PATCH", "/api/me", { body: { name } });
export const setPassword = (current: string | null, next: string) =>
  request("PUT", "/api/me/password", { body: { current_password: current, new_password: next } });
export const getNewPasskeyOptions = () => request("POST", "/api/me/passkeys/options");
export const addPasskey = (name: string, credential: Schemas["NewPasskeyIn"]["credential"]) =>
  request("POST", "/api/me/passkeys", { body: { name, credential } });
export const setTimezone = (timezone: string | null) => request("PATCH", "/api/me", { body: { timezone } });
export const getStorage = () => request("GET", "/api/me/storage");
