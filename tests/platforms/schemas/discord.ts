// The types of Discord's API that the local server checks: what a bot sends, and what it receives.
import type {
  APIChannel,
  APIMessage,
  APIUser,
  APIApplication,
  APIGatewayBotInfo,
  GatewayHeartbeat,
  GatewayIdentify,
  GatewayResume,
  GatewayHello,
  GatewayHeartbeatAck,
  GatewayInvalidSession,
  GatewayReconnect,
  GatewayReadyDispatch,
  GatewayResumedDispatch,
  GatewayGuildCreateDispatch,
  GatewayGuildDeleteDispatch,
  GatewayGuildMemberUpdateDispatch,
  GatewayChannelCreateDispatch,
  GatewayChannelUpdateDispatch,
  GatewayChannelDeleteDispatch,
  GatewayThreadCreateDispatch,
  GatewayThreadUpdateDispatch,
  GatewayThreadDeleteDispatch,
  GatewayThreadListSyncDispatch,
  GatewayMessageCreateDispatch,
  GatewayMessageUpdateDispatch,
  GatewayMessageDeleteDispatch,
  GatewayMessageDeleteBulkDispatch,
  GatewayMessageReactionAddDispatch,
  GatewayMessageReactionRemoveDispatch,
  GatewayInteractionCreateDispatch,
  RESTGetAPIChannelMessagesQuery,
  RESTGetAPICurrentUserGuildsResult,
  RESTPatchAPIChannelMessageJSONBody,
  RESTPostAPIChannelMessageJSONBody,
  RESTPostAPIInteractionCallbackJSONBody,
  RESTPostAPIInteractionFollowupJSONBody,
  RESTPutAPIApplicationCommandsJSONBody,
} from "discord-api-types/v10";

// What a bot sends, by REST and by its socket.
export type CreateMessage = RESTPostAPIChannelMessageJSONBody;
export type EditMessage = RESTPatchAPIChannelMessageJSONBody;
export type ListMessages = RESTGetAPIChannelMessagesQuery;
export type PutCommands = RESTPutAPIApplicationCommandsJSONBody;
export type InteractionCallback = RESTPostAPIInteractionCallbackJSONBody;
export type InteractionFollowup = RESTPostAPIInteractionFollowupJSONBody;
export type Heartbeat = GatewayHeartbeat;
export type Identify = GatewayIdentify;
export type Resume = GatewayResume;

// What a bot receives: answers, and the payloads of the socket, events under their own names.
export type Message = APIMessage;
export type Channel = APIChannel;
export type User = APIUser;
export type Application = APIApplication;
export type Guilds = RESTGetAPICurrentUserGuildsResult;
export type GatewayBot = APIGatewayBotInfo;
export type HELLO = GatewayHello;
export type HEARTBEAT_ACK = GatewayHeartbeatAck;
export type INVALID_SESSION = GatewayInvalidSession;
export type RECONNECT = GatewayReconnect;
export type READY = GatewayReadyDispatch;
export type RESUMED = GatewayResumedDispatch;
export type GUILD_CREATE = GatewayGuildCreateDispatch;
export type GUILD_DELETE = GatewayGuildDeleteDispatch;
export type GUILD_MEMBER_UPDATE = GatewayGuildMemberUpdateDispatch;
export type CHANNEL_CREATE = GatewayChannelCreateDispatch;
export type CHANNEL_UPDATE = GatewayChannelUpdateDispatch;
export type CHANNEL_DELETE = GatewayChannelDeleteDispatch;
export type THREAD_CREATE = GatewayThreadCreateDispatch;
export type THREAD_UPDATE = GatewayThreadUpdateDispatch;
export type THREAD_DELETE = GatewayThreadDeleteDispatch;
export type THREAD_LIST_SYNC = GatewayThreadListSyncDispatch;
export type MESSAGE_CREATE = GatewayMessageCreateDispatch;
export type MESSAGE_UPDATE = GatewayMessageUpdateDispatch;
export type MESSAGE_DELETE = GatewayMessageDeleteDispatch;
export type MESSAGE_DELETE_BULK = GatewayMessageDeleteBulkDispatch;
export type MESSAGE_REACTION_ADD = GatewayMessageReactionAddDispatch;
export type MESSAGE_REACTION_REMOVE = GatewayMessageReactionRemoveDispatch;
export type INTERACTION_CREATE = GatewayInteractionCreateDispatch;
