// Made from the API's description by tools/types.mjs; do not edit. Shapes: ffd1628e2ab891d0a38fbb1b611e604ee235c656e1db37bd64e68ad84a6d21e5
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AfreshOut
         * @description When conversations start afresh by themselves.
         */
        AfreshOut: {
            /**
             * Chat Types
             * @description In chats of which kinds.
             */
            chat_types: components["schemas"]["ChatType"][];
            mode: components["schemas"]["ResetMode"];
            /**
             * Idle Minutes
             * @description With `idle` and `both`: after this long without a human word.
             */
            idle_minutes: number;
            /**
             * At Hour
             * @description With `daily` and `both`: when this hour strikes.
             */
            at_hour: number;
            /**
             * Timezone
             * @description Where it strikes.
             */
            timezone: string;
            /**
             * Notify
             * @description Whether the person is told.
             */
            notify: boolean;
            /**
             * Key
             * @description What decides it in config.yaml.
             * @example reset_by_platform.telegram
             */
            key: string;
            /**
             * Is Default
             * @description Nobody has decided anything else.
             */
            is_default: boolean;
        };
        /**
         * AgentMemoryOut
         * @description Whether the agent remembers and recalls for you.
         */
        AgentMemoryOut: {
            /**
             * Enabled
             * @description Whether the agent has a memory at all.
             */
            enabled: boolean;
            /**
             * Allowed
             * @description Whether it may use it for somebody with your role.
             */
            allowed: boolean;
            /**
             * Platforms
             * @description Where it may use it; null is everywhere.
             */
            platforms: string[] | null;
        };
        /**
         * AgentOut
         * @description Which agent answers here.
         */
        AgentOut: {
            /** Model */
            model: string;
            /** Description */
            description: string;
        };
        /**
         * AttachmentOut
         * @description A file that was sent.
         */
        AttachmentOut: {
            /**
             * Id
             * @example a_0123456789abcdef01234567
             */
            id: string;
            /** Name */
            name: string;
            /**
             * Type
             * @description What its bytes are, whatever its name says.
             */
            type: string;
            /**
             * Size
             * @description In bytes.
             */
            size: number;
        };
        /**
         * AuthorOut
         * @description Who said it, where several people speak.
         */
        AuthorOut: {
            /** Name */
            name: string;
            /** Id */
            id?: string | null;
        };
        /**
         * BusyPolicy
         * @description What happens to a message that arrives while the agent is answering another one.
         * @enum {string}
         */
        BusyPolicy: "queue" | "steer" | "interrupt" | "reject";
        /**
         * ChatCall
         * @description A call, as OpenAI's clients make it.
         */
        ChatCall: {
            /**
             * Model
             * @default palaver
             */
            model?: string;
            /** Messages */
            messages: components["schemas"]["ChatMessage"][];
            /**
             * Stream
             * @default false
             */
            stream?: boolean;
            stream_options?: components["schemas"]["StreamOptions"] | null;
            /** N */
            n?: 1 | null;
            /**
             * Tools
             * @description The agent uses its own tools; those of a caller are refused.
             */
            tools?: unknown[] | null;
            /**
             * User
             * @description Your own name for a conversation: calls with the same one go on with it.
             */
            user?: string | null;
            /**
             * Metadata
             * @description `session_id` names a conversation to go on with.
             */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * ChatCompletion
         * @description A whole answer.
         */
        ChatCompletion: {
            /** Id */
            id: string;
            /**
             * Object
             * @default chat.completion
             * @constant
             */
            object?: "chat.completion";
            /** Created */
            created: number;
            /** Model */
            model: string;
            /** Choices */
            choices: components["schemas"]["Choice"][];
            usage: components["schemas"]["CompletionUsage"];
            /**
             * Metadata
             * @description `session_id`: the conversation it was said in.
             */
            metadata: {
                [key: string]: string;
            };
        };
        /**
         * ChatMessage
         * @description One message of a call.
         */
        ChatMessage: {
            /**
             * Role
             * @enum {string}
             */
            role: "system" | "developer" | "user" | "assistant" | "tool" | "function";
            /** Content */
            content?: string | {
                [key: string]: unknown;
            }[] | null;
        };
        /**
         * ChatType
         * @description What kind of place a chat is; a `forum`, as some adapters say, is a group.
         * @enum {string}
         */
        ChatType: "dm" | "group" | "channel" | "thread";
        /**
         * Choice
         * @description An answer; there is always one.
         */
        Choice: {
            /**
             * Index
             * @default 0
             * @constant
             */
            index?: 0;
            message: components["schemas"]["Said"];
            /**
             * Finish Reason
             * @description `length` when the answer was cut short.
             * @enum {string}
             */
            finish_reason: "stop" | "length";
            /** Logprobs */
            logprobs?: null;
        };
        /**
         * CommandIn
         * @description Nothing but a key: the same one twice is done once.
         */
        CommandIn: {
            /** Key */
            key?: string | null;
        };
        /**
         * CommandOut
         * @description A slash command.
         */
        CommandOut: {
            /** Name */
            name: string;
            /** Usage */
            usage: string;
            /** Summary */
            summary: string;
        };
        /**
         * CommandsOut
         * @description The slash commands that you may use.
         */
        CommandsOut: {
            /** Commands */
            commands: components["schemas"]["CommandOut"][];
        };
        /**
         * CompletionUsage
         * @description What the answer used, as far as the provider told.
         */
        CompletionUsage: {
            /** Prompt Tokens */
            prompt_tokens: number;
            /** Completion Tokens */
            completion_tokens: number;
            /** Total Tokens */
            total_tokens: number;
            /** Prompt Tokens Details */
            prompt_tokens_details: {
                [key: string]: number;
            };
            /** Completion Tokens Details */
            completion_tokens_details: {
                [key: string]: number;
            };
        };
        /**
         * CompressIn
         * @description What a summary must not lose.
         */
        CompressIn: {
            /** Focus */
            focus?: string | null;
            /** Key */
            key?: string | null;
        };
        /**
         * DeliveriesOut
         * @description Deliveries of a conversation, oldest first.
         */
        DeliveriesOut: {
            /** Deliveries */
            deliveries: components["schemas"]["DeliveryOut"][];
        };
        /**
         * DeliveryOut
         * @description An answer that is sent to where people read it.
         */
        DeliveryOut: {
            /** Id */
            id: string;
            /** Turn Id */
            turn_id: string;
            /**
             * Input Seq
             * @description The message that is answered.
             */
            input_seq: number;
            /**
             * Quotes
             * @description Messages that are quoted before the answer.
             */
            quotes: number[];
            /** Platform */
            platform: string;
            /**
             * State
             * @enum {string}
             */
            state: "pending" | "sending" | "sent" | "uncertain" | "failed";
            /**
             * Error
             * @description Why it failed, is uncertain, or is tried again.
             */
            error: string | null;
            /**
             * Created At
             * Format: date-time
             * @description The moment of the answer.
             */
            created_at: string;
            /** Ended At */
            ended_at: string | null;
        };
        /**
         * DeviceOut
         * @description A browser in which somebody is signed in.
         */
        DeviceOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /**
             * Way
             * @description How it signed in: by link, password or passkey.
             */
            way: string;
            /**
             * Address
             * @description From where it signed in.
             */
            address: string;
            /**
             * Signed In At
             * Format: date-time
             */
            signed_in_at: string;
            /**
             * Seen At
             * Format: date-time
             */
            seen_at: string;
            /**
             * Current
             * @description Whether it is the one that asks.
             */
            current: boolean;
        };
        /**
         * DevicesOut
         * @description Where somebody is signed in, the latest first.
         */
        DevicesOut: {
            /** Devices */
            devices: components["schemas"]["DeviceOut"][];
        };
        /**
         * EditIn
         * @description What is said instead of an earlier message, in a copy of all that came before it.
         */
        EditIn: {
            /** At */
            at: number;
            /** Content */
            content: string | ({
                [key: string]: unknown;
            } | string)[];
            /** Key */
            key: string;
            busy?: components["schemas"]["BusyPolicy"] | null;
            /**
             * Attachments
             * @description Ids of files that go along: those of the earlier message, or others.
             */
            attachments?: string[];
        };
        /**
         * EditOut
         * @description The copy, and what became of the message.
         */
        EditOut: {
            session: components["schemas"]["SessionOut"];
            receipt: components["schemas"]["ReceiptOut"];
        };
        /**
         * ErrorBody
         * @description What went wrong.
         */
        ErrorBody: {
            /**
             * Code
             * @description A stable name for programs.
             * @example no_such_session
             */
            code: string;
            /**
             * Message
             * @description A sentence for people.
             */
            message: string;
            /**
             * Facts
             * @description What the sentence speaks of, as data.
             */
            facts: {
                [key: string]: unknown;
            };
        };
        /**
         * ErrorDetail
         * @description What went wrong.
         */
        ErrorDetail: {
            /** Message */
            message: string;
            /** Type */
            type: string;
            /** Param */
            param: string | null;
            /** Code */
            code: string | null;
        };
        /**
         * ErrorOut
         * @description The shape of every error.
         */
        ErrorOut: {
            error: components["schemas"]["ErrorBody"];
        };
        /**
         * EventOut
         * @description One line of a conversation's log.
         */
        EventOut: {
            /** Seq */
            seq: number;
            /** Kind */
            kind: string;
            /**
             * At
             * Format: date-time
             */
            at: string;
            /**
             * Hidden
             * @description A message that was taken back; it is kept.
             */
            hidden: boolean;
            person: components["schemas"]["PersonRef"] | null;
            /** @description For kind `message`. */
            message: components["schemas"]["MessageOut"] | null;
            /**
             * Facts
             * @description For every other kind.
             */
            facts: {
                [key: string]: unknown;
            };
        };
        /**
         * EventsOut
         * @description A part of a log, oldest first.
         */
        EventsOut: {
            /** Events */
            events: components["schemas"]["EventOut"][];
            /** More Before */
            more_before: boolean;
            /** More After */
            more_after: boolean;
        };
        /**
         * ForkIn
         * @description Where a copy ends, and what it is called.
         */
        ForkIn: {
            /**
             * At
             * @description Up to and including the turn of this message; null: everything.
             */
            at?: number | null;
            /** Title */
            title?: string | null;
        };
        /**
         * Grouping
         * @description What belongs together in a report.
         * @enum {string}
         */
        Grouping: "day" | "model" | "platform" | "person" | "session";
        /**
         * HealthOut
         * @description Whether it works.
         */
        HealthOut: {
            /**
             * Status
             * @constant
             */
            status: "ok";
            /** Version */
            version: string;
        };
        /**
         * HitOut
         * @description A message that was found.
         */
        HitOut: {
            /** Session Id */
            session_id: string;
            /** Title */
            title: string | null;
            /** Seq */
            seq: number;
            /**
             * At
             * Format: date-time
             */
            at: string;
            /** Role */
            role: string;
            /** Snippet */
            snippet: string;
            /**
             * Marks
             * @description Where the words stand in the snippet: from, to (exclusive).
             */
            marks: [
                number,
                number
            ][];
            /**
             * Position
             * @description Orders hits in the whole store.
             */
            position: number;
        };
        /**
         * HitsOut
         * @description What was found, newest first.
         */
        HitsOut: {
            /** Hits */
            hits: components["schemas"]["HitOut"][];
            /**
             * Cursor
             * @description Continues the search as `before`; null at its end.
             */
            cursor: number | null;
        };
        /**
         * InvitedOut
         * @description Somebody, and the link to send them.
         */
        InvitedOut: {
            person: components["schemas"]["MemberOut"];
            link: components["schemas"]["LinkOut"];
        };
        /**
         * LinkIn
         * @description What stands behind the # of a sign-in link.
         */
        LinkIn: {
            /** Token */
            token: string;
        };
        /**
         * LinkOut
         * @description A link that signs somebody in once; it is shown here and never again.
         */
        LinkOut: {
            /**
             * Url
             * @description The token stands behind the #, so that no server is sent it before it is used.
             */
            url: string;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
        };
        /**
         * MeOut
         * @description Whoever is signed in, and what they speak with.
         */
        MeOut: {
            person: components["schemas"]["PersonOut"];
            ways: components["schemas"]["WaysOut"];
            /** Version */
            version: string;
            agent: components["schemas"]["AgentOut"];
        };
        /**
         * MemberOut
         * @description Somebody as the owner sees them.
         */
        MemberOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            role: components["schemas"]["Role"];
            /**
             * Platforms
             * @description Where they are known.
             */
            platforms: string[];
            /** @description How they sign in; null when they cannot. */
            ways: components["schemas"]["WaysOut"] | null;
            /**
             * Seen At
             * @description When one of their browsers was last here.
             */
            seen_at: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * At Terminal
             * @description Whether they sit at the terminal, and so stay the owner.
             */
            at_terminal: boolean;
        };
        /**
         * MemoriesOut
         * @description A page of what you may know, newest first.
         */
        MemoriesOut: {
            /** Memories */
            memories: components["schemas"]["MemoryOut"][];
            /**
             * Cursor
             * @description Continues the list; null at its end.
             */
            cursor: string | null;
            agent: components["schemas"]["AgentMemoryOut"];
        };
        /**
         * MemoryIn
         * @description What to remember, in a few words.
         */
        MemoryIn: {
            /**
             * Text
             * @example My cat is called Ada.
             */
            text: string;
        };
        /**
         * MemoryOut
         * @description Something that is remembered.
         */
        MemoryOut: {
            /** Id */
            id: string;
            /** Text */
            text: string;
            /**
             * Asked By
             * @description The name of whoever asked for it as it reads now, if that is known.
             */
            asked_by: string | null;
            /** Asked By Me */
            asked_by_me: boolean;
            /**
             * Created At
             * Format: date-time
             * @description When they did.
             */
            created_at: string;
            /**
             * Shared
             * @description It belongs to a place that several people share, and changes for all of them.
             */
            shared: boolean;
            /**
             * Others
             * @description The names of others who know it too: at most ten of them.
             */
            others: string[];
            /**
             * Other Count
             * @description How many others know it.
             */
            other_count: number;
        };
        /**
         * MessageIn
         * @description Something to say.
         */
        MessageIn: {
            /**
             * Content
             * @description Text, or parts in the shape chat models use.
             */
            content: string | ({
                [key: string]: unknown;
            } | string)[];
            /**
             * Key
             * @description Your own name for this message: sent twice with the same key, it is one message.
             */
            key: string;
            /** @description What happens to it while the agent is answering. */
            busy?: components["schemas"]["BusyPolicy"] | null;
            /**
             * Attachments
             * @description Ids of files that were uploaded before.
             */
            attachments?: string[];
            /**
             * @description Where the answer is read: here alone, or also where the conversation takes place (`reachable`).
             * @default here
             */
            reply?: components["schemas"]["ReplyTo"];
        };
        /**
         * MessageOut
         * @description What was said, in the shape chat models use; what does not apply is null.
         */
        MessageOut: {
            /**
             * Role
             * @enum {string}
             */
            role: "system" | "user" | "assistant" | "tool";
            /** Content */
            content: string | unknown[] | null;
            author?: components["schemas"]["AuthorOut"] | null;
            /** Tool Calls */
            tool_calls?: unknown[] | null;
            /** Tool Call Id */
            tool_call_id?: string | null;
            /** Tool Name */
            tool_name?: string | null;
            /** Reasoning */
            reasoning?: string | null;
            /**
             * Interrupted
             * @default false
             */
            interrupted?: boolean;
            /**
             * Is Error
             * @default false
             */
            is_error?: boolean;
            /**
             * Duration Ms
             * @description How long the tool took; of the message that ends an answer, how long the agent worked on it.
             */
            duration_ms?: number | null;
            /**
             * Answers
             * @description The number of the message that it answers.
             */
            answers?: number | null;
        };
        /**
         * ModelList
         * @description The models that can be asked for.
         */
        ModelList: {
            /**
             * Object
             * @default list
             * @constant
             */
            object?: "list";
            /** Data */
            data: components["schemas"]["palaver__web__openai_wire__ModelOut"][];
        };
        /**
         * ModelsOut
         * @description Which models a conversation may choose.
         */
        ModelsOut: {
            /** Models */
            models: components["schemas"]["palaver__web__routes__models__ModelOut"][];
            /** Default */
            default: string;
            /**
             * Description
             * @description Which agent answers, and why.
             */
            description: string;
        };
        /**
         * NameIn
         * @description A name.
         */
        NameIn: {
            /** Name */
            name: string;
        };
        /**
         * NewPasskeyIn
         * @description What `navigator.credentials.create()` has answered, as JSON, and what to call it.
         */
        NewPasskeyIn: {
            /** Name */
            name: string;
            /** Credential */
            credential: {
                [key: string]: unknown;
            };
        };
        /**
         * NewPasswordIn
         * @description A new password, and the one that it replaces, if there is one.
         */
        NewPasswordIn: {
            /** Current */
            current?: string | null;
            /** New */
            new: string;
        };
        /**
         * NewPersonIn
         * @description Somebody who is to be let in.
         */
        NewPersonIn: {
            /** Name */
            name: string;
            /** @default member */
            role?: components["schemas"]["Role"];
        };
        /**
         * NewShareOut
         * @description A new copy, and what opens it. The secret is told only now.
         */
        NewShareOut: {
            /** Id */
            id: string;
            /** Session Id */
            session_id: string;
            /** Title */
            title: string | null;
            /** Message Count */
            message_count: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Secret */
            secret: string;
            /**
             * Path
             * @description Where the page shows it. The secret stands behind the #, which no server is sent.
             */
            path: string;
        };
        /**
         * NewTokenIn
         * @description What a token is for.
         */
        NewTokenIn: {
            /** Name */
            name: string;
            /** Scopes */
            scopes: components["schemas"]["Scope"][];
            /** Expires In Days */
            expires_in_days?: number | null;
        };
        /**
         * NewTokenOut
         * @description A new token; its secret is shown here and never again.
         */
        NewTokenOut: {
            token: components["schemas"]["TokenOut"];
            /** Secret */
            secret: string;
        };
        /**
         * OpenAIError
         * @description An error in OpenAI's shape.
         */
        OpenAIError: {
            error: components["schemas"]["ErrorDetail"];
        };
        /**
         * PasskeyIn
         * @description What `navigator.credentials.get()` has answered, as JSON.
         */
        PasskeyIn: {
            /** Credential */
            credential: {
                [key: string]: unknown;
            };
        };
        /**
         * PasskeyOut
         * @description A passkey.
         */
        PasskeyOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /**
             * Site
             * @description The host it was made for, and the only one at which it works.
             */
            site: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Used At */
            used_at: string | null;
        };
        /**
         * PasskeysOut
         * @description Somebody's passkeys, the latest first.
         */
        PasskeysOut: {
            /** Passkeys */
            passkeys: components["schemas"]["PasskeyOut"][];
        };
        /**
         * PasswordIn
         * @description A name and a password.
         */
        PasswordIn: {
            /** Name */
            name: string;
            /** Password */
            password: string;
        };
        /**
         * PeopleOut
         * @description A page of people, those who came last first.
         */
        PeopleOut: {
            /** People */
            people: components["schemas"]["MemberOut"][];
            /** Cursor */
            cursor: string | null;
        };
        /**
         * PersonChangeIn
         * @description What to change about somebody; what is not given stays.
         */
        PersonChangeIn: {
            /** Name */
            name?: string | null;
            role?: components["schemas"]["Role"] | null;
        };
        /**
         * PersonOut
         * @description A person.
         */
        PersonOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            role: components["schemas"]["Role"];
        };
        /**
         * PersonRef
         * @description Who did something.
         */
        PersonRef: {
            /** Id */
            id: string;
            /** Name */
            name: string;
        };
        /**
         * PlaceOut
         * @description Where a conversation takes place.
         */
        PlaceOut: {
            /** Platform */
            platform: string;
            /** Chat Name */
            chat_name: string | null;
            /** User Name */
            user_name: string | null;
        };
        /**
         * PlatformOut
         * @description One platform; what went wrong is of the last day.
         */
        PlatformOut: {
            /** Platform */
            platform: string;
            /**
             * Connected
             * @description This process receives and sends there.
             */
            connected: boolean;
            /**
             * Waiting
             * @description Deliveries that are on their way.
             */
            waiting: number;
            /**
             * Uncertain
             * @description Deliveries of which nobody knows whether they arrived.
             */
            uncertain: number;
            /**
             * Failed
             * @description Deliveries that did not arrive and are not tried again.
             */
            failed: number;
            /**
             * Trouble
             * @description The last of these, in words.
             */
            trouble: string | null;
            /** Trouble At */
            trouble_at: string | null;
        };
        /**
         * PlatformsOut
         * @description The platforms by name.
         */
        PlatformsOut: {
            /** Platforms */
            platforms: components["schemas"]["PlatformOut"][];
        };
        /**
         * PoliciesOut
         * @description What holds where nothing else is said, and on each platform that is set up or that you are known on.
         */
        PoliciesOut: {
            default: components["schemas"]["PolicyOut"];
            /** Platforms */
            platforms: components["schemas"]["PolicyOut"][];
        };
        /**
         * PolicyOut
         * @description What holds on a platform.
         */
        PolicyOut: {
            /**
             * Platform
             * @description Null is wherever nothing else is said.
             */
            platform: string | null;
            /**
             * Afresh
             * @description Empty where only a person begins a new conversation.
             */
            afresh: components["schemas"]["AfreshOut"][];
            /** @description What happens to a message that comes while the agent answers another. */
            busy: components["schemas"]["BusyPolicy"];
            /** Busy Key */
            busy_key: string;
            /** Busy Is Default */
            busy_is_default: boolean;
            /**
             * Lines
             * @description Lines for config.yaml that say the same for this platform, to be changed.
             */
            lines: string;
        };
        /**
         * ProjectIn
         * @description A new project.
         */
        ProjectIn: {
            /** Name */
            name: string;
            /**
             * Colour
             * @example #3b82f6
             */
            colour?: string | null;
        };
        /**
         * ProjectOut
         * @description A folder for conversations.
         */
        ProjectOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Colour */
            colour: string | null;
            /** Session Count */
            session_count: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
        /**
         * ProjectPatch
         * @description What is to change; what is left out stays.
         */
        ProjectPatch: {
            /** Name */
            name?: string | null;
            /** Colour */
            colour?: string | null;
        };
        /**
         * ProjectsOut
         * @description Your projects by name.
         */
        ProjectsOut: {
            /** Projects */
            projects: components["schemas"]["ProjectOut"][];
        };
        /**
         * ReadIn
         * @description How far somebody has read.
         */
        ReadIn: {
            /** Seq */
            seq: number;
        };
        /**
         * ReadOut
         * @description How far that is now; it never goes back.
         */
        ReadOut: {
            /** Read Seq */
            read_seq: number;
        };
        /**
         * ReceiptOut
         * @description What became of a message or a command. When you read it, all of it is durable.
         */
        ReceiptOut: {
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "accepted" | "queued" | "collected" | "steered" | "interrupting" | "command" | "duplicate" | "refused";
            /** Session Id */
            session_id: string | null;
            /** Turn Id */
            turn_id: string | null;
            /**
             * Seq
             * @description The message's number in the log.
             */
            seq: number | null;
            /**
             * Ahead
             * @description Turns that come first in the same conversation.
             */
            ahead: number;
            /**
             * Reply
             * @description What the gateway itself says, in Markdown.
             */
            reply: string | null;
            /** Facts */
            facts: {
                [key: string]: unknown;
            };
        };
        /**
         * ReplyTo
         * @description Where the answer to a message is read that was written on a surface of ours.
         * @enum {string}
         */
        ReplyTo: "here" | "there";
        /**
         * ResetMode
         * @description What makes a conversation start afresh.
         * @enum {string}
         */
        ResetMode: "none" | "idle" | "daily" | "both";
        /**
         * Role
         * @description What a person is to this gateway.
         * @enum {string}
         */
        Role: "owner" | "member" | "guest";
        /**
         * RunIn
         * @description A slash command to carry out.
         */
        RunIn: {
            /**
             * Text
             * @example /new Trip to Lisbon
             */
            text: string;
            /** Key */
            key: string;
            /**
             * Session Id
             * @description The conversation it is about.
             */
            session_id?: string | null;
        };
        /**
         * Said
         * @description What was answered.
         */
        Said: {
            /**
             * Role
             * @default assistant
             * @constant
             */
            role?: "assistant";
            /** Content */
            content: string;
            /** Refusal */
            refusal?: null;
        };
        /**
         * Scope
         * @description What a token may be used for.
         * @enum {string}
         */
        Scope: "read" | "write" | "chat" | "admin";
        /**
         * SessionIn
         * @description A new conversation.
         */
        SessionIn: {
            /** Title */
            title?: string | null;
            /**
             * Project
             * @description One of your projects, by id or name.
             */
            project?: string | null;
            /**
             * Model
             * @description Instead of the default.
             */
            model?: string | null;
            /**
             * Key
             * @description Your own name for it: with the same key twice it is one conversation.
             */
            key?: string | null;
        };
        /**
         * SessionOut
         * @description A conversation, as the one who asks sees it.
         */
        SessionOut: {
            /**
             * Id
             * @example 20261115_081200_1a2b3c4d
             */
            id: string;
            /** Title */
            title: string | null;
            /**
             * Name
             * @description What to call it: its title, or where it takes place.
             */
            name: string;
            /** Preview */
            preview: string;
            /** Platform */
            platform: string;
            /**
             * Chat Type
             * @enum {string}
             */
            chat_type: "dm" | "group" | "channel" | "thread";
            /**
             * Shared
             * @description Several people speak here.
             */
            shared: boolean;
            source: components["schemas"]["PlaceOut"];
            /** Message Count */
            message_count: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Active At
             * @description Null until something is said; only then do lists show it.
             */
            active_at: string | null;
            /** Ended At */
            ended_at: string | null;
            /** Pinned */
            pinned: boolean;
            /** Archived */
            archived: boolean;
            /** Project Id */
            project_id: string | null;
            /**
             * Parent Id
             * @description What it was forked from.
             */
            parent_id: string | null;
            /**
             * Model
             * @description Used last.
             */
            model: string | null;
            /**
             * Chosen Model
             * @description For this conversation alone; null: the default.
             */
            chosen_model: string | null;
            /** @description For this conversation alone; null: as the settings say. */
            busy_policy: components["schemas"]["BusyPolicy"] | null;
            /**
             * Toolsets Off
             * @description Toolsets that are switched off here, by name.
             */
            toolsets_off: string[];
            /**
             * Running
             * @description An answer is being given.
             */
            running: boolean;
            /**
             * Queued
             * @description Messages that wait for an answer.
             */
            queued: number;
            /**
             * Last Seq
             * @description The number of the last event in its log.
             */
            last_seq: number;
            /**
             * Read Seq
             * @description The last one that you have seen.
             */
            read_seq: number;
            /**
             * Context Tokens
             * @description What the last answer was given; 0: not known, as after a summary.
             */
            context_tokens: number;
            usage: components["schemas"]["UsageOut"];
            /**
             * Reachable
             * @description Answers can be sent to where it takes place: a message may ask for that.
             */
            reachable: boolean;
            /**
             * Owner
             * @description Whose it is; only where everybody's were asked for.
             */
            owner: string | null;
        };
        /**
         * SessionPatch
         * @description What is to change; what is left out stays.
         */
        SessionPatch: {
            /**
             * Title
             * @description Null takes it away.
             */
            title?: string | null;
            /**
             * Pinned
             * @default false
             */
            pinned?: boolean;
            /**
             * Archived
             * @default false
             */
            archived?: boolean;
            /**
             * Project
             * @description By id or name; null takes it out of any.
             */
            project?: string | null;
            /**
             * Model
             * @description Null is the default.
             */
            model?: string | null;
            /** @description Null is what the settings say. */
            busy?: components["schemas"]["BusyPolicy"] | null;
            /**
             * Toolsets
             * @description Toolsets by name, to be switched on or off; the others stay. Null: all that the operator allows.
             */
            toolsets?: {
                [key: string]: boolean;
            } | null;
        };
        /**
         * SessionsOut
         * @description A page of conversations, newest first.
         */
        SessionsOut: {
            /** Sessions */
            sessions: components["schemas"]["SessionOut"][];
            /**
             * Cursor
             * @description Continues the list; null at its end. A page may be short before that.
             */
            cursor: string | null;
        };
        /**
         * ShareOut
         * @description A copy that you have made.
         */
        ShareOut: {
            /** Id */
            id: string;
            /** Session Id */
            session_id: string;
            /** Title */
            title: string | null;
            /** Message Count */
            message_count: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
        /**
         * SharedMessageOut
         * @description Something that was said.
         */
        SharedMessageOut: {
            /**
             * Role
             * @enum {string}
             */
            role: "assistant" | "user";
            /**
             * Name
             * @description `Person`, or a number for each of several; null for the agent.
             */
            name: string | null;
            /** Text */
            text: string;
        };
        /**
         * SharedOut
         * @description A conversation as it was when it was shared, without ids, names, tools and files.
         */
        SharedOut: {
            /** Title */
            title: string | null;
            /**
             * Shared At
             * Format: date-time
             */
            shared_at: string;
            /** Messages */
            messages: components["schemas"]["SharedMessageOut"][];
        };
        /**
         * SharesOut
         * @description Your copies, newest first.
         */
        SharesOut: {
            /** Shares */
            shares: components["schemas"]["ShareOut"][];
        };
        /**
         * SignedInOut
         * @description Who is signed in now.
         */
        SignedInOut: {
            person: components["schemas"]["PersonOut"];
        };
        /**
         * SpentOut
         * @description What one group used.
         */
        SpentOut: {
            /** Input Tokens */
            input_tokens: number;
            /** Output Tokens */
            output_tokens: number;
            /** Cache Read Tokens */
            cache_read_tokens: number;
            /** Cache Write Tokens */
            cache_write_tokens: number;
            /** Reasoning Tokens */
            reasoning_tokens: number;
            /** Cost Usd */
            cost_usd: string | null;
            /** Unpriced Turns */
            unpriced_turns: number;
            /**
             * Group
             * @description A day, a model, a platform, or an id; null: what belongs to none.
             */
            group: string | null;
            /** Label */
            label: string;
            /** Turns */
            turns: number;
        };
        /**
         * StopIn
         * @description What to stop.
         */
        StopIn: {
            /**
             * Queued
             * @description Also drop what waits.
             * @default false
             */
            queued?: boolean;
            /** Key */
            key?: string | null;
        };
        /**
         * StreamOptions
         * @description What a stream ends with.
         */
        StreamOptions: {
            /**
             * Include Usage
             * @default false
             */
            include_usage?: boolean;
        };
        /**
         * TokenOut
         * @description An API token, without its secret.
         */
        TokenOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Scopes */
            scopes: components["schemas"]["Scope"][];
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Used At */
            used_at: string | null;
            /** Expires At */
            expires_at: string | null;
        };
        /**
         * TokensOut
         * @description Somebody's tokens, the latest first.
         */
        TokensOut: {
            /** Tokens */
            tokens: components["schemas"]["TokenOut"][];
        };
        /**
         * ToolOut
         * @description One tool.
         */
        ToolOut: {
            /** Name */
            name: string;
            /** Description */
            description: string;
        };
        /**
         * ToolsetOut
         * @description A set of tools.
         */
        ToolsetOut: {
            /**
             * Name
             * @description `history`, `memory`, or `mcp:` and the name of a server.
             * @example memory
             */
            name: string;
            /** Description */
            description: string;
            /**
             * On
             * @description False: it is switched off in this conversation.
             */
            on: boolean;
            /**
             * Tools
             * @description Empty while its server cannot be reached.
             */
            tools: components["schemas"]["ToolOut"][];
        };
        /**
         * ToolsetsOut
         * @description The toolsets that the operator's rules give you in a conversation.
         */
        ToolsetsOut: {
            /** Toolsets */
            toolsets: components["schemas"]["ToolsetOut"][];
        };
        /**
         * UndoIn
         * @description How much to take back.
         */
        UndoIn: {
            /**
             * Turns
             * @default 1
             */
            turns?: number;
            /** Key */
            key?: string | null;
        };
        /**
         * UsageOut
         * @description What a conversation used, and what that cost in US dollars; null when nobody knows.
         */
        UsageOut: {
            /** Input Tokens */
            input_tokens: number;
            /** Output Tokens */
            output_tokens: number;
            /** Cache Read Tokens */
            cache_read_tokens: number;
            /** Cache Write Tokens */
            cache_write_tokens: number;
            /** Reasoning Tokens */
            reasoning_tokens: number;
            /** Cost Usd */
            cost_usd: string | null;
            /** Unpriced Turns */
            unpriced_turns: number;
            /**
             * Cost Status
             * @enum {string}
             */
            cost_status: "unknown" | "estimated" | "actual";
        };
        /**
         * UsageReportOut
         * @description What was used, by group, and in all.
         */
        UsageReportOut: {
            /** Rows */
            rows: components["schemas"]["SpentOut"][];
            total: components["schemas"]["SpentOut"];
        };
        /**
         * WaysInOut
         * @description How anybody at all can sign in here, besides by a link.
         */
        WaysInOut: {
            /** Password */
            password: boolean;
            /** Passkey */
            passkey: boolean;
        };
        /**
         * WaysOut
         * @description How somebody can sign in, besides by a link.
         */
        WaysOut: {
            /** Password */
            password: boolean;
            /** Passkeys */
            passkeys: number;
        };
        /**
         * ModelOut
         * @description A model that can be asked for.
         */
        palaver__web__openai_wire__ModelOut: {
            /** Id */
            id: string;
            /**
             * Object
             * @default model
             * @constant
             */
            object?: "model";
            /**
             * Created
             * @default 0
             */
            created?: number;
            /**
             * Owned By
             * @default palaver
             */
            owned_by?: string;
        };
        /**
         * ModelOut
         * @description A model.
         */
        palaver__web__routes__models__ModelOut: {
            /** Name */
            name: string;
            /**
             * Context Window
             * @description How many tokens it takes; null when nobody knows.
             */
            context_window: number | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
