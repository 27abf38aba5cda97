/** Why the server would not do something, in English: by its stable code, with what it names. Null: in its own words. */
import type { Refusals } from "./index";

export const refusalsEn = {
  // signing in
  not_signed_in: () => "You are not signed in any more.",
  sign_in_refused: ({ way }) => {
    const ways: Record<string, string> = {
      link: "This link has been used or is too old.",
      password: "This name and this password do not go together.",
      passkey: "This passkey is not known here, or was asked for too long ago. Try again, or sign in another way.",
    };
    return ways[way ?? ""] ?? null;
  },
  too_many_attempts: ({ retry_after }) => `Too many attempts. Try again in ${retry_after} seconds.`,
  wrong_password: () => "This is not your current password.",
  wrong_passkey: () => "This passkey could not be checked. Begin again.",
  weak_password: ({ least, limit }) =>
    least === undefined
      ? "This is one of the first passwords that anybody would try. A few words in a row are better."
      : `A password has ${least} to ${limit} characters.`,

  // names
  invalid_name: ({ limit }) => (limit === undefined ? null : `A name is one line of 1 to ${limit} characters.`),
  name_taken: ({ name }) => `Somebody who can sign in is called “${name}” already. Choose another name.`,
  invalid_title: ({ limit }) =>
    limit === undefined ? "A title needs at least one character that can be seen." : `A title has at most ${limit} characters.`,
  title_taken: ({ title, free }) => `You already have a conversation called “${title}”; “${free}” is free.`,
  project_taken: ({ name }) => `You already have a project called “${name}”. Choose another name.`,

  // what is not there, or not to be done
  no_such_session: () => "This conversation is not there, or it is not yours.",
  no_such_project: () => "This project is not there any more.",
  no_such_share: () => "This copy is not there any more.",
  no_such_attachment: () => "This file is not there any more.",
  owner_only: ({ action }) =>
    action === undefined
      ? "Only an owner of this gateway may do this."
      : "Several people share this conversation; only an owner of this gateway may do this with it.",
  still_answering: () => "The agent is still answering in this conversation. Wait for it, or stop it first.",
  nothing_to_undo: () => "There is no turn left to undo.",
  nothing_to_redo: () => "There is nothing to bring back: nothing was undone, or the conversation has gone on since.",
  nothing_to_restore: () => "There is nothing to take back here.",
  too_little: ({ limit }) => `There is too little to summarise: it takes ${limit} messages or more.`,
  already_remembered: () => "The same thing is remembered already. Forget one of the two.",
  not_reachable: ({ platform }) =>
    platform === undefined
      ? "This conversation takes place nowhere else, so nothing can be sent there. Let the answer be read here."
      : `${platform} is not connected to this server, so nothing can be sent there. Let the answer be read here.`,

  // too much
  limit_reached: ({ what, limit, most }) => {
    const room: Record<string, string> = {
      tokens: `You have ${limit} tokens already. Revoke one first.`,
      passkeys: `You have ${limit} passkeys already. Remove one first.`,
      shares: `You share ${limit} conversations already. Take one back first.`,
      memories: `${limit} things are remembered already. Forget one first.`,
      bytes: `Your files have ${most} together, which is the most that is kept. Delete conversations with files in them.`,
    };
    return room[what ?? ""] ?? null;
  },
  queue_full: ({ limit }) => `${limit} messages wait here already. Send it again later, or stop the answer.`,
  too_long: ({ limit }) => `This message is too long: ${limit} characters are the most that is taken.`,
  too_large: () => "This is larger than what is taken here.",
  attachment_too_large: ({ most }) => `This file is too large: ${most} is the most that is taken.`,
  attachment_refused: () => "Files of this kind are not taken. Send an image, a PDF, a sound, or text in UTF-8.",
  invalid_request: ({ where, limit }) =>
    limit === undefined ? null : `There may be at most ${limit} here: ${where?.replace(/^body\./, "")}.`,

  // the server
  store_busy: () => "The database is busy. Try again in a moment.",
  store_full: () => "The server’s disk is full; nothing was stored.",
  store_read_only: () => "The server’s database cannot be written; nothing was stored.",
  store_unavailable: () => "The server’s database cannot be reached; nothing was stored.",
  internal_error: () => "Something went wrong inside Palaver; its log has more.",
} satisfies Refusals;
