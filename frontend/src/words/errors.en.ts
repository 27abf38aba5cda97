/** The server's errors in English, by their stable code. Null: the server's own message is shown. */
import type { ErrorTexts } from "./index";

export const errorsEn = {
  // signing in
  not_signed_in: () => "You’ve been signed out.",
  sign_in_failed: ({ method }) => {
    const methods: Record<string, string> = {
      link: "This link has expired or was already used.",
      password: "Wrong name or password.",
      passkey: "Passkey not recognized, or the request timed out. Try again, or sign in another way.",
    };
    return methods[method ?? ""] ?? null;
  },
  too_many_requests: () => "You have too many requests in progress. Wait until some of them have ended.",
  too_many_streams: () => "Palaver is open in too many tabs or programs. Close some of them.",
  too_many_attempts: ({ retry_after }) => `Too many attempts. Try again in ${retry_after} seconds.`,
  wrong_password: () => "That’s not your current password.",
  wrong_passkey: () => "Couldn’t verify this passkey. Try again.",
  weak_password: ({ minimum, limit }) =>
    minimum === undefined
      ? "That password is too common. Try a few words in a row."
      : `Passwords need ${minimum} to ${limit} characters.`,

  // names
  invalid_name: ({ limit }) => (limit === undefined ? null : `Names need 1 to ${limit} characters on one line.`),
  name_taken: ({ name }) => `The name “${name}” is taken. Choose another one.`,
  invalid_title: ({ limit }) =>
    limit === undefined ? "A title needs at least one visible character." : `Titles can have up to ${limit} characters.`,
  title_taken: ({ title, available_title }) => `You already have a conversation called “${title}”. Try “${available_title}”.`,
  project_name_taken: ({ name }) => `You already have a project called “${name}”. Choose another name.`,

  // what is not there, or not to be done
  settings_changed: () => "Someone else has changed the settings in the meantime. Check them and try again.",
  session_not_found: () => "Conversation not found. It may have been deleted, or you don’t have access.",
  project_not_found: () => "Project not found. It may have been deleted.",
  share_expired: () => "This link has expired.",
  share_not_found: () => "This shared link no longer exists.",
  attachment_not_found: () => "This file no longer exists.",
  owner_required: ({ action }) =>
    action === undefined
      ? "Only the server’s owner can do this."
      : "Several people share this conversation. Only the server’s owner can do this.",
  import_not_found: () => "Import not found. It may have been deleted, or you don’t have access.",
  import_too_large: ({ limit_bytes }) => `This file is too large. The limit is ${limit_bytes}.`,
  unknown_export: ({ name }) =>
    `“${name}” is not an export that Palaver knows. Use the .zip or .json file of your export from ChatGPT, Claude or Open WebUI, or a file that Palaver has exported.`,
  database_not_imported: ({ name }) =>
    `“${name}” is a database, not an export of your own conversations. In Open WebUI, export your chats as a JSON file and import that one.`,
  command_unavailable: () => "Commands don’t work in a temporary conversation.",
  session_busy: () => "The agent is still responding. Wait for it to finish, or stop it first.",
  nothing_to_undo: () => "Nothing to undo.",
  nothing_to_redo: () => "Nothing to redo: nothing was undone, or the conversation has continued since.",
  nothing_to_restore: () => "Nothing to restore here.",
  nothing_to_compact: ({ limit }) => `Too short to compact: ${limit === "1" ? "at least 1 message is" : `at least ${limit} messages are`} needed.`,
  job_not_found: () => "Job not found. It may have been deleted, or you don’t have access.",
  job_name_taken: ({ name }) => `You already have a job called “${name}”. Edit that one, or choose another name.`,
  job_running: () => "This job is already running. Wait until it has ended.",
  invalid_input: () => null, // the server’s message says what is wrong with which field
  duplicate_memory: () => "You already have this memory.",
  chat_not_reachable: ({ platform }) =>
    platform === undefined
      ? "This conversation isn’t connected to a chat platform. Choose “Reply here”."
      : `${platform} isn’t connected. Choose “Reply here”, or connect it.`,
  account_not_running: () => "No server is running this account. Start the server that should connect it.",

  // too much
  file_quota_reached: ({ what, limit, limit_bytes }) =>
    what === "files"
      ? `You’ve reached the limit of ${limit} files. Delete conversations with files to free up space.`
      : `You’ve used all your file storage (${limit_bytes}). Delete conversations with files to free up space.`,
  limit_reached: ({ what, limit }) => {
    const room: Record<string, string> = {
      tokens: `You’ve reached the limit of ${limit} tokens. Revoke one first.`,
      passkeys: `You’ve reached the limit of ${limit} passkeys. Remove one first.`,
      shares: `You’ve reached the limit of ${limit} shared links. Stop sharing one first.`,
      jobs: `You’ve reached the limit of ${limit} jobs. Delete one first.`,
      memories: `You’ve reached the limit of ${limit} memories. Forget one first.`,
      imports: `${limit} files of yours wait to be imported. Import or delete one first.`,
      temporary_answers: "Too many temporary conversations are being answered. Wait for one to finish, or stop it.",
    };
    return room[what ?? ""] ?? null;
  },
  queue_full: ({ limit }) => `The queue is full (${limit === "1" ? "1 message" : `${limit} messages`}). Try again later, or stop the agent.`,
  too_many_messages: ({ retry_after }) => `You’re sending messages too fast. Try again in ${retry_after === "1" ? "1 second" : `${retry_after} seconds`}.`,
  too_long: ({ limit }) => `This message is too long. The limit is ${limit === "1" ? "1 character" : `${limit} characters`}.`,
  too_large: () => "This is too large.",
  attachment_too_large: ({ limit_bytes }) => `This file is too large. The limit is ${limit_bytes}.`,
  unsupported_file_type: () => "This file type isn’t supported. Send an image, PDF, Office document, audio or UTF-8 text file.",
  invalid_request: ({ field, limit }) =>
    limit === undefined ? null : `The limit for ${field?.replace(/^body\./, "")} is ${limit}.`,

  // the server
  store_busy: () => "The database is busy. Try again in a moment.",
  attachments_unavailable: () =>
    "Files can’t be stored or opened right now. Ask the operator to check the server’s attachments folder.",
  store_full: () => "The server’s disk is full. Nothing was saved.",
  store_read_only: () => "The server’s database is read-only. Nothing was saved.",
  store_file_lost: () =>
    "The server’s database file was removed or replaced. Nothing can be saved until the operator puts it back.",
  store_unavailable: () => "The server can’t reach its database. Nothing was saved.",
  internal_error: () => "Something went wrong. The server log has details.",
} satisfies ErrorTexts;
