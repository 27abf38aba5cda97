// What the tests of Slack check: the parameters of each method that the adapter calls, the events it receives, and the
// manifest of an app, as the documentation has it.
import type {
  AppsManifestCreateArguments,
  AssistantThreadsSetStatusArguments,
  ChatAppendStreamArguments,
  ChatDeleteArguments,
  ChatPostEphemeralArguments,
  ChatPostMessageArguments,
  ChatStartStreamArguments,
  ChatStopStreamArguments,
  ChatUpdateArguments,
  ConversationsHistoryArguments,
  ConversationsInfoArguments,
  ConversationsRepliesArguments,
  FilesCompleteUploadExternalArguments,
  FilesGetUploadURLExternalArguments,
  FilesInfoArguments,
  ReactionsAddArguments,
  ReactionsGetArguments,
  ReactionsRemoveArguments,
  UsersConversationsArguments,
  UsersInfoArguments,
} from "@slack/web-api";
import type { SlackEvent } from "@slack/types";

// Several files of the package have interfaces with the same name, which the generator refuses to write.
type Flat<T> = Omit<T, never>;

export interface SlackRequests {
  "assistant.threads.setStatus": AssistantThreadsSetStatusArguments;
  "chat.appendStream": ChatAppendStreamArguments;
  "chat.delete": ChatDeleteArguments;
  "chat.postEphemeral": ChatPostEphemeralArguments;
  "chat.postMessage": ChatPostMessageArguments;
  "chat.startStream": ChatStartStreamArguments;
  "chat.stopStream": ChatStopStreamArguments;
  "chat.update": ChatUpdateArguments;
  "conversations.history": Flat<ConversationsHistoryArguments>;
  "conversations.info": Flat<ConversationsInfoArguments>;
  "conversations.replies": Flat<ConversationsRepliesArguments>;
  "files.completeUploadExternal": FilesCompleteUploadExternalArguments;
  "files.getUploadURLExternal": FilesGetUploadURLExternalArguments;
  "files.info": Flat<FilesInfoArguments>;
  "reactions.add": ReactionsAddArguments;
  "reactions.get": ReactionsGetArguments;
  "reactions.remove": ReactionsRemoveArguments;
  "users.conversations": UsersConversationsArguments;
  "users.info": UsersInfoArguments;
}

export interface SlackEvents {
  event: SlackEvent;
}

export interface SlackManifests {
  manifest: AppsManifestCreateArguments["manifest"];
}
