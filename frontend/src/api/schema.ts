// Generated from the API's description by tools/types.mjs; do not edit. Schemas: 0cba870761569c112cf470dab127e04f723a4733d6d759a62450f44e43e86383
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AccountTestIn
         * @description Settings of an account, which need not be stored; a stored one that is left out is used.
         */
        AccountTestIn: {
            /**
             * Account
             * @description Its name; empty for the only one.
             * @default
             */
            account?: string;
            /** Settings */
            settings?: {
                [key: string]: unknown;
            };
        };
        /**
         * AccountTestJson
         * @description The outcome of signing in. The account is not connected.
         */
        AccountTestJson: {
            /** Ok */
            ok: boolean;
            /** Seconds */
            seconds: number;
            /**
             * Name
             * @description The name of the account on the platform.
             */
            name: string | null;
            /**
             * Is Linked
             * @description False: it has to be linked with a phone after it is saved.
             */
            is_linked: boolean;
            /** Warnings */
            warnings: string[];
            /** Details */
            details: string[];
            /** Error */
            error: string | null;
        };
        /**
         * ActionIn
         * @description An action without parameters.
         */
        ActionIn: {
            /**
             * Key
             * @description Your own id for this request. Repeating it with the same key has no effect.
             */
            key?: string | null;
        };
        /**
         * AgentJson
         * @description The agent that answers here.
         */
        AgentJson: {
            /** Model */
            model: string;
            /** Description */
            description: string;
        };
        /**
         * AgentMemoryJson
         * @description Whether the agent can use its memory for you.
         */
        AgentMemoryJson: {
            /**
             * Enabled
             * @description Whether the agent's memory is turned on.
             */
            enabled: boolean;
            /**
             * Allowed
             * @description Whether the agent may use it for people with your role.
             */
            allowed: boolean;
            /**
             * Platforms
             * @description The platforms on which the agent may use it; null for all.
             */
            platforms: string[] | null;
            /**
             * Learn
             * @description Whether the agent learns facts by itself when a conversation ends.
             */
            learn: boolean;
        };
        /**
         * AllOfferedModelsJson
         * @description The models of all connected providers.
         */
        AllOfferedModelsJson: {
            /** Providers */
            providers: components["schemas"]["OfferedModelsJson"][];
        };
        /**
         * AnswerMessage
         * @description The answer.
         */
        AnswerMessage: {
            /**
             * Role
             * @constant
             */
            role: "assistant";
            /** Content */
            content: string;
            /** Refusal */
            refusal: null;
        };
        /**
         * ApprovalIn
         * @description The access of the stranger: `member`, `guest` (only in these direct messages) or `me` (it is your account).
         */
        ApprovalIn: {
            grant: components["schemas"]["Grant"];
        };
        /**
         * AttachmentJson
         * @description An uploaded file.
         */
        AttachmentJson: {
            /**
             * Id
             * @example a_0123456789abcdef01234567
             */
            id: string;
            /** Name */
            name: string;
            /**
             * Media Type
             * @description The media type, detected from the content and not from the name.
             */
            media_type: string;
            /**
             * Size
             * @description In bytes.
             */
            size: number;
        };
        /**
         * AuthorJson
         * @description The author of a message in a conversation with several people.
         */
        AuthorJson: {
            /** Name */
            name: string;
            /** Id */
            id: string | null;
        };
        /**
         * AvailableModelsJson
         * @description The models of a provider, as it lists them.
         */
        AvailableModelsJson: {
            /**
             * Models
             * @description Without the provider: `provider:name` is the name of a model in settings.
             */
            models: string[];
        };
        /**
         * BudgetJson
         * @description One window of a budget: a day or a month of everybody together, a person, a job or a profile.
         */
        BudgetJson: {
            scope: components["schemas"]["BudgetScope"];
            /**
             * Subject
             * @description The id of a person or job, or the name of a profile; empty for all together, or each of them.
             */
            subject: string;
            period: components["schemas"]["BudgetPeriod"];
            /**
             * Resets At
             * Format: date-time
             */
            resets_at: string;
            /**
             * Timezone
             * @description The time zone in which days and months begin.
             */
            timezone: string;
            /**
             * Subject Name
             * @description For people to read.
             */
            subject_name: string;
            /**
             * Used Usd
             * @description In US dollars, as a decimal.
             */
            used_usd: string;
            /**
             * Held Usd
             * @description Held for calls that are running: the most that they can cost.
             */
            held_usd: string;
            /**
             * Limit Usd
             * @description Null: no limit.
             */
            limit_usd: string | null;
            /** Used Tokens */
            used_tokens: number;
            /** Held Tokens */
            held_tokens: number;
            /**
             * Limit Tokens
             * @description Null: no limit.
             */
            limit_tokens: number | null;
            /**
             * Unpriced Calls
             * @description Calls whose price is unknown and not part of `used_usd`.
             */
            unpriced_calls: number;
            /**
             * Percent
             * @description How much of the tighter limit is used or held; null without a limit.
             */
            percent: number | null;
            /**
             * Is Limit Set
             * @description An owner has set a limit for exactly this; otherwise the server settings apply.
             */
            is_limit_set: boolean;
        };
        /**
         * BudgetPeriod
         * @enum {string}
         */
        BudgetPeriod: "day" | "month";
        /**
         * BudgetScope
         * @enum {string}
         */
        BudgetScope: "all" | "person" | "job" | "profile";
        /**
         * BudgetsJson
         * @description Budgets.
         */
        BudgetsJson: {
            /** Budgets */
            budgets: components["schemas"]["BudgetJson"][];
            /**
             * Used Up
             * @description For members: budgets shared with others that are used up. Owners see those among `budgets`.
             */
            used_up: components["schemas"]["UsedUpBudgetJson"][];
            /**
             * Next Cursor
             * @description Pass this to get the next page; null on the last page.
             */
            next_cursor: string | null;
        };
        /**
         * BusyPolicy
         * @description The treatment of a message that arrives while the agent is answering another one.
         * @enum {string}
         */
        BusyPolicy: "queue" | "steer" | "interrupt" | "reject";
        /**
         * ChangeItemJson
         * @description One key of a change. A secret is shown as `set`, with its last characters if it is long.
         */
        ChangeItemJson: {
            /** Key */
            key: string;
            /** Before */
            before: unknown;
            /** After */
            after: unknown;
            /** Is Secret */
            is_secret: boolean;
        };
        /**
         * ChatAccountJson
         * @description An account on a chat platform.
         */
        ChatAccountJson: {
            /** Platform */
            platform: string;
            /**
             * Account
             * @description The platform's own id of the user, which never changes.
             */
            account: string;
        };
        /**
         * ChatCompletion
         * @description A complete answer.
         */
        ChatCompletion: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "chat.completion";
            /** Created */
            created: number;
            /** Model */
            model: string;
            /** Choices */
            choices: components["schemas"]["Choice"][];
            usage: components["schemas"]["CompletionUsage"];
            /**
             * Metadata
             * @description `session_id`: the id of the conversation.
             */
            metadata: {
                [key: string]: string;
            };
        };
        /**
         * ChatCompletionRequest
         * @description A request for an answer, in OpenAI's format.
         */
        ChatCompletionRequest: {
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
             * @description Not supported: the agent uses its own tools.
             */
            tools?: unknown[] | null;
            /**
             * User
             * @description Your own name for a conversation. Requests with the same name continue it.
             */
            user?: string | null;
            /**
             * Metadata
             * @description `session_id`: the id of a conversation to continue.
             */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * ChatMessage
         * @description One message of a request.
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
         * ChatSourceJson
         * @description The chat that a conversation comes from.
         */
        ChatSourceJson: {
            /** Platform */
            platform: string;
            /** Chat Name */
            chat_name: string | null;
            /** User Name */
            user_name: string | null;
        };
        /**
         * ChatType
         * @description The type of a chat; some adapters say `forum`, which counts as a group.
         * @enum {string}
         */
        ChatType: "dm" | "group" | "channel" | "thread";
        /**
         * Choice
         * @description An answer. There is always exactly one.
         */
        Choice: {
            /**
             * Index
             * @constant
             */
            index: 0;
            message: components["schemas"]["AnswerMessage"];
            /**
             * Finish Reason
             * @description `length` if the answer was interrupted.
             * @enum {string}
             */
            finish_reason: "stop" | "length";
            /** Logprobs */
            logprobs: null;
        };
        /**
         * ChooseVersionIn
         * @description The version to show.
         */
        ChooseVersionIn: {
            /**
             * Key
             * @description Your own id for this request. Repeating it with the same key has no effect.
             */
            key?: string | null;
            /**
             * Seq
             * @description The number of the message whose versions these are.
             */
            seq: number;
            /**
             * Version
             * @description The number of the version, from 1.
             */
            version: number;
        };
        /**
         * CommandIn
         * @description A slash command to run.
         */
        CommandIn: {
            /**
             * Text
             * @example /new Trip to Lisbon
             */
            text: string;
            /** Key */
            key: string;
            /**
             * Session Id
             * @description The conversation to run it in.
             */
            session_id?: string | null;
        };
        /**
         * CommandJson
         * @description A slash command.
         */
        CommandJson: {
            /** Name */
            name: string;
            /** Usage */
            usage: string;
            /** Summary */
            summary: string;
        };
        /**
         * CommandsJson
         * @description The slash commands that you can use.
         */
        CommandsJson: {
            /** Commands */
            commands: components["schemas"]["CommandJson"][];
        };
        /**
         * CompactIn
         * @description Options for the summary.
         */
        CompactIn: {
            /**
             * Focus
             * @description What the summary should keep in particular.
             */
            focus?: string | null;
            /** Key */
            key?: string | null;
        };
        /**
         * CompletionUsage
         * @description Tokens used, as reported by the provider.
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
         * ConnectionTestJson
         * @description The result of a test of the connection.
         */
        ConnectionTestJson: {
            /**
             * Finished At
             * Format: date-time
             */
            finished_at: string;
            /**
             * Seconds
             * @description How long it took.
             */
            seconds: number;
            /**
             * Error
             * @description Why it failed, in words; null if it worked, or waits to be linked.
             */
            error: string | null;
        };
        /**
         * ConversationJson
         * @description A conversation, as you see it.
         */
        ConversationJson: {
            /**
             * Id
             * @example 20261115_081200_1a2b3c4d
             */
            id: string;
            /**
             * Title
             * @description The title that a person chose; unique for its owner.
             */
            title: string | null;
            /**
             * Auto Title
             * @description The first words, or a model's title after the first answer. Null before the first words.
             */
            auto_title: string | null;
            /**
             * Display Name
             * @description What to call the conversation: its title, its automatic title or the name of its chat.
             */
            display_name: string;
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
             * @description Several people take part.
             */
            shared: boolean;
            source: components["schemas"]["ChatSourceJson"];
            /** Message Count */
            message_count: number;
            /**
             * Tool Call Count
             * @description How many tool calls the agent has made here, including undone ones.
             */
            tool_call_count: number;
            /**
             * Is First Contact
             * @description It is the first conversation with its person or, if several people take part, in its chat.
             */
            is_first_contact: boolean;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Active At
             * @description When it was last active; null while it is empty. Lists leave empty conversations out.
             */
            active_at: string | null;
            /** Ended At */
            ended_at: string | null;
            /**
             * End Reason
             * @description Why it has ended: `idle` and `daily` by the reset policy, the others because its chat moved on.
             */
            end_reason: ("idle" | "daily" | "manual" | "forced" | "switched" | "restored") | null;
            /** Pinned */
            pinned: boolean;
            /** Archived */
            archived: boolean;
            /** Project Id */
            project_id: string | null;
            /**
             * Parent Id
             * @description The conversation that this one was forked from.
             */
            parent_id: string | null;
            /**
             * Model
             * @description The model that answered last.
             */
            model: string | null;
            /**
             * Model Provider
             * @description The provider of the model that answered last; null if unknown.
             */
            model_provider: string | null;
            /**
             * Chosen Model
             * @description The model chosen for this conversation; null for that of its profile, or else the default.
             */
            chosen_model: string | null;
            /**
             * Profile
             * @description The name of the profile chosen for this conversation; null for the default.
             */
            profile: string | null;
            /**
             * Personality
             * @description The name of the personality chosen for this conversation.
             */
            personality: string | null;
            /**
             * Workspace
             * @description The folder or topic of this conversation, which the agent is told.
             */
            workspace: string | null;
            /** @description The busy policy chosen for this conversation; null for the server's setting. */
            busy_policy: components["schemas"]["BusyPolicy"] | null;
            /**
             * Disabled Toolsets
             * @description Names of the toolsets that are turned off in this conversation.
             */
            disabled_toolsets: string[];
            /**
             * Running
             * @description The agent is responding.
             */
            running: boolean;
            /**
             * Queued
             * @description How many messages are queued.
             */
            queued: number;
            /**
             * Last Seq
             * @description The number of the last event in the log.
             */
            last_seq: number;
            /**
             * Read Seq
             * @description The number of the last event that you have read.
             */
            read_seq: number;
            /**
             * Context Tokens
             * @description How many tokens the model received for the last answer; 0 if unknown, for example after a compaction.
             */
            context_tokens: number;
            usage: components["schemas"]["ConversationUsageJson"];
            /**
             * Reachable
             * @description Answers can be delivered to the chat that the conversation comes from.
             */
            reachable: boolean;
            /**
             * Owner Name
             * @description The name of the person it belongs to; only in requests with `all`.
             */
            owner_name: string | null;
        };
        /**
         * ConversationUsageJson
         * @description Tokens that a conversation used, and their cost.
         */
        ConversationUsageJson: {
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
            /**
             * Cost Usd
             * @description The cost in US dollars; null if it is unknown.
             */
            cost_usd: string | null;
            /**
             * Unpriced Turns
             * @description Turns whose cost is unknown and not part of `cost_usd`.
             */
            unpriced_turns: number;
            /**
             * Cost Status
             * @enum {string}
             */
            cost_status: "unknown" | "estimated" | "actual";
        };
        /**
         * ConversationsJson
         * @description A page of conversations, newest first.
         */
        ConversationsJson: {
            /** Sessions */
            sessions: components["schemas"]["ConversationJson"][];
            /**
             * Next Cursor
             * @description Pass this to get the next page; null on the last page. Any page may have fewer than `limit` items.
             */
            next_cursor: string | null;
        };
        /**
         * CostBasis
         * @description What an estimated cost is based on.
         * @enum {string}
         */
        CostBasis: "runs" | "estimate" | "unknown";
        /**
         * DeliveriesJson
         * @description A page of a conversation's deliveries, oldest first.
         */
        DeliveriesJson: {
            /** Deliveries */
            deliveries: components["schemas"]["DeliveryJson"][];
            /**
             * Total
             * @description How many deliveries the conversation has in all.
             */
            total: number;
            /**
             * Next Cursor
             * @description Pass this as `cursor` to get the deliveries before these; null if there are none.
             */
            next_cursor: string | null;
        };
        /**
         * DeliveryJson
         * @description An answer, or a message that a job or the agent sent, on its way to a chat platform.
         */
        DeliveryJson: {
            /** Id */
            id: string;
            /**
             * Turn Id
             * @description Only for answers.
             */
            turn_id: string | null;
            /**
             * Input Seq
             * @description The number of the message that is answered. Only for answers.
             */
            input_seq: number | null;
            /**
             * Message Seq
             * @description The number of the message itself, if it is not an answer.
             */
            message_seq: number | null;
            /**
             * Quoted Seqs
             * @description Messages quoted above the answer.
             */
            quoted_seqs: number[];
            /** Platform */
            platform: string;
            /**
             * State
             * @enum {string}
             */
            state: "pending" | "sending" | "sent" | "uncertain" | "failed";
            /**
             * Error
             * @description Why it failed, is uncertain or will be retried.
             */
            error: string | null;
            /**
             * Created At
             * Format: date-time
             * @description When the answer was finished.
             */
            created_at: string;
            /** Ended At */
            ended_at: string | null;
        };
        /**
         * DeliveryState
         * @enum {string}
         */
        DeliveryState: "pending" | "sending" | "sent" | "uncertain" | "failed";
        /**
         * DeviceJson
         * @description A browser that is signed in to your account.
         */
        DeviceJson: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /**
             * Sign In Method
             * @description How it signed in: `link`, `password` or `passkey`.
             */
            sign_in_method: string;
            /**
             * Ip Address
             * @description The IP address that it signed in from.
             */
            ip_address: string;
            /**
             * Signed In At
             * Format: date-time
             */
            signed_in_at: string;
            /**
             * Last Seen At
             * Format: date-time
             */
            last_seen_at: string;
            /**
             * Is Current
             * @description Whether this request comes from it.
             */
            is_current: boolean;
        };
        /**
         * DevicesJson
         * @description Browsers signed in to your account, newest first.
         */
        DevicesJson: {
            /** Devices */
            devices: components["schemas"]["DeviceJson"][];
        };
        /**
         * EditIn
         * @description A new version of an earlier message.
         */
        EditIn: {
            /**
             * Seq
             * @description The number of the message to replace.
             */
            seq: number;
            /** Content */
            content: string | ({
                [key: string]: unknown;
            } | string)[];
            /** Key */
            key: string;
            busy_policy?: components["schemas"]["BusyPolicy"] | null;
            /**
             * Attachment Ids
             * @description Ids of files to attach: those of the earlier message or others.
             */
            attachment_ids?: string[];
            /**
             * Branch
             * @description Send it in a new conversation, with a copy of everything before it. Otherwise it replaces the message in place, and the other version is kept.
             * @default false
             */
            branch?: boolean;
        };
        /**
         * EditJson
         * @description The conversation that the message was sent in, and what happened to it.
         */
        EditJson: {
            session: components["schemas"]["ConversationJson"];
            receipt: components["schemas"]["ReceiptJson"];
        };
        /**
         * ErasureIn
         * @description The name of the person, typed to confirm.
         */
        ErasureIn: {
            /** Name */
            name: string;
        };
        /**
         * ErasureJson
         * @description A count of what was erased.
         */
        ErasureJson: {
            /**
             * Counts
             * @description How many there were of each kind.
             */
            counts: {
                [key: string]: number;
            };
            /** Ended At */
            ended_at: string | null;
        };
        /**
         * ErasurePreviewJson
         * @description The person who would be erased, and how much would go.
         */
        ErasurePreviewJson: {
            /** Person Id */
            person_id: string;
            /**
             * Name
             * @description Send it back to confirm.
             */
            name: string;
            /**
             * Counts
             * @description How many there are of each kind: conversations, messages, files …
             */
            counts: {
                [key: string]: number;
            };
        };
        /**
         * ErrorBody
         * @description An explanation of an error.
         */
        ErrorBody: {
            /**
             * Code
             * @description A stable identifier for programs.
             * @example session_not_found
             */
            code: string;
            /**
             * Message
             * @description An explanation for people.
             */
            message: string;
            /**
             * Facts
             * @description The values mentioned in the message, for programs.
             */
            facts: {
                [key: string]: unknown;
            };
        };
        /**
         * ErrorDetail
         * @description An explanation of an error.
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
         * @description An error. Every error response has this shape.
         */
        ErrorOut: {
            error: components["schemas"]["ErrorBody"];
        };
        /**
         * FindingCode
         * @description Everything that can be found: the code, what was checked, what was found, and how to fix it.
         * @enum {string}
         */
        FindingCode: "check_failed" | "check_broken" | "checks_not_started" | "checks_too_slow" | "checks_without_result" | "versions" | "clock_wrong" | "clock_differs" | "clock_agrees" | "clock" | "time_zone" | "server_runs" | "server_problem" | "server_silent" | "server_stopped" | "turns_waiting" | "port_free" | "port_taken" | "sandbox" | "sandbox_missing" | "documents_contained" | "documents_not_contained" | "configuration_valid" | "configuration_missing" | "configuration_problem" | "setting_problem" | "home_missing" | "home_not_folder" | "home_of_other_user" | "home_not_writable" | "home_private" | "home_readable" | "disk_full" | "disk_small" | "disk" | "backup_missing" | "backup_old" | "backup" | "files_missing" | "files" | "database_missing" | "database_driver_missing" | "database_old" | "database" | "database_too_new" | "database_damaged" | "database_error" | "integrity_ok" | "integrity_problem" | "integrity_repairable" | "platforms_none" | "account_problem" | "account_idle" | "account_failed" | "account_runs" | "account_warning" | "deliveries_failed" | "sign_in_failed" | "sign_in_too_slow" | "sign_in_error" | "sign_in_warning" | "sign_in" | "model_unusable" | "model_demo" | "model_not_tried" | "model_too_slow" | "model_over_budget" | "model_failed" | "model_empty" | "model_answers";
        /**
         * FindingJson
         * @description The result of a check.
         */
        FindingJson: {
            /** @description A stable identifier for programs. */
            code: components["schemas"]["FindingCode"];
            /** Subject */
            subject: string;
            /**
             * Severity
             * @enum {string}
             */
            severity: "ok" | "warning" | "problem";
            /** Text */
            text: string;
            /**
             * Fix
             * @description How to fix it: a command, or a key of the settings with what to write there.
             */
            fix: string | null;
            /**
             * Facts
             * @description The values mentioned in `text` and `fix`, for programs.
             */
            facts: {
                [key: string]: string;
            };
        };
        /**
         * ForkIn
         * @description The message to branch off at, and the title of the new conversation.
         */
        ForkIn: {
            /**
             * Up To Seq
             * @description Copy everything up to the turn of this message, inclusive; null copies everything.
             */
            up_to_seq?: number | null;
            /** Title */
            title?: string | null;
        };
        /**
         * FormFieldJson
         * @description A text that a form asks for, besides the fields that have a place of their own there.
         */
        FormFieldJson: {
            /** Name */
            name: string;
            /** Label */
            label: string;
            /** Help */
            help: string;
            /** Max Chars */
            max_chars: number;
        };
        /**
         * Grant
         * @description The access that an approval gives to the account that asked.
         * @enum {string}
         */
        Grant: "member" | "guest" | "me";
        /**
         * HealthDetailsJson
         * @description The result of `palaver doctor`.
         */
        HealthDetailsJson: {
            /**
             * Ok
             * @description Whether there are no problems; there may be warnings.
             */
            ok: boolean;
            /** Findings */
            findings: components["schemas"]["FindingJson"][];
            /** Version */
            version: string;
            /**
             * Checked At
             * Format: date-time
             */
            checked_at: string;
            /** Duration Seconds */
            duration_seconds: number;
        };
        /**
         * HealthJson
         * @description The health of the server.
         */
        HealthJson: {
            /**
             * Status
             * @constant
             */
            status: "ok";
            /** Version */
            version: string;
        };
        /**
         * HomeChannelJson
         * @description The default chat of a platform, from config.yaml or chosen with `/sethome`.
         */
        HomeChannelJson: {
            /**
             * Name
             * @description For people to read; empty if it is not known.
             */
            name: string;
            /**
             * Target
             * @description Where deliveries to the platform go, such as `telegram:42`.
             */
            target: string;
        };
        /**
         * ImportJson
         * @description A file that was uploaded to import it, and what has become of it.
         */
        ImportJson: {
            /**
             * Id
             * @example imp_0123456789abcdef
             */
            id: string;
            /** Name */
            name: string;
            /**
             * Size
             * @description In bytes.
             */
            size: number;
            /** Created At */
            created_at: string;
            /**
             * State
             * @enum {string}
             */
            state: "checking" | "ready" | "importing" | "done" | "failed";
            /**
             * Format
             * @description `chatgpt`, `claude`, `open-webui` or `palaver`, once it is recognized.
             */
            format: string | null;
            /**
             * Progress
             * @description The conversations that were looked at or imported so far.
             */
            progress: number;
            /**
             * Total
             * @description All conversations in the file, if that is known.
             */
            total: number | null;
            /** @description What would come in (`ready`), or has come in (`done`). */
            report: components["schemas"]["ReportJson"] | null;
            /** @description Why it failed. */
            error: components["schemas"]["ErrorBody"] | null;
        };
        /**
         * ImportsJson
         * @description Your imports of the last day, and how large a file may be.
         */
        ImportsJson: {
            /** Imports */
            imports: components["schemas"]["ImportJson"][];
            /** Max Bytes */
            max_bytes: number;
        };
        /**
         * InvitationJson
         * @description A person, and the sign-in link to send them.
         */
        InvitationJson: {
            person: components["schemas"]["MemberJson"];
            link: components["schemas"]["SignInLinkJson"];
        };
        /**
         * JobDetailsJson
         * @description A job, and what it means.
         */
        JobDetailsJson: {
            /** Name */
            name: string;
            /** Prompt */
            prompt: string;
            /**
             * Schedule
             * @description As it is stored.
             * @example 0 7 * * MON-FRI
             */
            schedule: string;
            /**
             * Words
             * @description The schedule in words, with the time zone.
             * @example every weekday at 07:00 (Europe/Vienna)
             */
            words: string;
            /** Timezone */
            timezone: string;
            /**
             * Runs Left
             * @description Scheduled runs that are left; null: without end.
             */
            runs_left: number | null;
            /**
             * Model
             * @description The model that it has chosen; null: the default.
             */
            model: string | null;
            /** Profile */
            profile: string | null;
            /** Id */
            id: string;
            /**
             * Person Id
             * @description On whose behalf it runs.
             */
            person_id: string;
            /** Person Name */
            person_name: string;
            /** Targets */
            targets: string[];
            /**
             * Toolsets
             * @description The toolsets that its runs may use.
             */
            toolsets: string[];
            state: components["schemas"]["JobState"];
            /**
             * State Reason
             * @description Why it is paused or has ended, if there is more to say.
             */
            state_reason: string | null;
            /**
             * Has Proposed Change
             * @description The agent has proposed a change that waits for confirmation.
             */
            has_proposed_change: boolean;
            /**
             * Asked At
             * @description When you were asked to confirm what the agent has proposed.
             */
            asked_at: string | null;
            /**
             * Next Slot
             * @description Its next scheduled time; null unless it is active.
             */
            next_slot: string | null;
            /**
             * Failure Count
             * @description How many runs have failed in a row.
             */
            failure_count: number;
            /**
             * Origin Platform
             * @description Where it was made.
             */
            origin_platform: string;
            /**
             * Origin Session Id
             * @description The conversation in which it was made.
             */
            origin_session_id: string | null;
            last_run: components["schemas"]["LastRunJson"] | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
            preview: components["schemas"]["JobPreviewJson"];
            /** @description The job as it would be with the change that the agent proposes. */
            proposed_change: components["schemas"]["JobPreviewJson"] | null;
        };
        /**
         * JobFieldsIn
         * @description The fields of a job.
         *
         *     In a change, a field that is missing or null stays as it is; null resets the model, the profile and `repeat`.
         */
        JobFieldsIn: {
            /**
             * Name
             * @description Its name; by default the first words of the prompt.
             */
            name?: string | null;
            /**
             * Prompt
             * @description What the agent should do.
             */
            prompt?: string | null;
            /**
             * Schedule
             * @description When it runs: `30m` (once, in 30 minutes), `every 2h`, five fields of cron by the wall clock of the time zone, or a time such as `2026-12-24 18:00`.
             * @example 0 7 * * MON-FRI
             */
            schedule?: string | null;
            /**
             * Timezone
             * @description An IANA time zone, such as Europe/Berlin; yours by default.
             * @example Europe/Vienna
             */
            timezone?: string | null;
            /**
             * Targets
             * @description Where the answer goes: `origin` (where the job is made, the default), `local` (a file), a platform (its home channel) or `platform:chat[:thread]`.
             */
            targets?: string[] | null;
            /**
             * Toolsets
             * @description The toolsets that its runs may use; `history` and `memory` by default, if you may use them.
             */
            toolsets?: string[] | null;
            /**
             * Repeat
             * @description How many scheduled runs it has; 0: without end.
             */
            repeat?: number | null;
            /**
             * Model
             * @description The model; `default` for the default.
             */
            model?: string | null;
            /**
             * Profile
             * @description A profile of the settings; `default` for none.
             */
            profile?: string | null;
        };
        /**
         * JobIn
         * @description A new job. `prompt` and `schedule` are required.
         */
        JobIn: {
            /**
             * Name
             * @description Its name; by default the first words of the prompt.
             */
            name?: string | null;
            /**
             * Prompt
             * @description What the agent should do.
             */
            prompt?: string | null;
            /**
             * Schedule
             * @description When it runs: `30m` (once, in 30 minutes), `every 2h`, five fields of cron by the wall clock of the time zone, or a time such as `2026-12-24 18:00`.
             * @example 0 7 * * MON-FRI
             */
            schedule?: string | null;
            /**
             * Timezone
             * @description An IANA time zone, such as Europe/Berlin; yours by default.
             * @example Europe/Vienna
             */
            timezone?: string | null;
            /**
             * Targets
             * @description Where the answer goes: `origin` (where the job is made, the default), `local` (a file), a platform (its home channel) or `platform:chat[:thread]`.
             */
            targets?: string[] | null;
            /**
             * Toolsets
             * @description The toolsets that its runs may use; `history` and `memory` by default, if you may use them.
             */
            toolsets?: string[] | null;
            /**
             * Repeat
             * @description How many scheduled runs it has; 0: without end.
             */
            repeat?: number | null;
            /**
             * Model
             * @description The model; `default` for the default.
             */
            model?: string | null;
            /**
             * Profile
             * @description A profile of the settings; `default` for none.
             */
            profile?: string | null;
            /**
             * Session Id
             * @description The conversation in which it is made; its target `origin` leads there.
             */
            session_id?: string | null;
        };
        /**
         * JobJson
         * @description A job.
         */
        JobJson: {
            /** Name */
            name: string;
            /** Prompt */
            prompt: string;
            /**
             * Schedule
             * @description As it is stored.
             * @example 0 7 * * MON-FRI
             */
            schedule: string;
            /**
             * Words
             * @description The schedule in words, with the time zone.
             * @example every weekday at 07:00 (Europe/Vienna)
             */
            words: string;
            /** Timezone */
            timezone: string;
            /**
             * Runs Left
             * @description Scheduled runs that are left; null: without end.
             */
            runs_left: number | null;
            /**
             * Model
             * @description The model that it has chosen; null: the default.
             */
            model: string | null;
            /** Profile */
            profile: string | null;
            /** Id */
            id: string;
            /**
             * Person Id
             * @description On whose behalf it runs.
             */
            person_id: string;
            /** Person Name */
            person_name: string;
            /** Targets */
            targets: string[];
            /**
             * Toolsets
             * @description The toolsets that its runs may use.
             */
            toolsets: string[];
            state: components["schemas"]["JobState"];
            /**
             * State Reason
             * @description Why it is paused or has ended, if there is more to say.
             */
            state_reason: string | null;
            /**
             * Has Proposed Change
             * @description The agent has proposed a change that waits for confirmation.
             */
            has_proposed_change: boolean;
            /**
             * Asked At
             * @description When you were asked to confirm what the agent has proposed.
             */
            asked_at: string | null;
            /**
             * Next Slot
             * @description Its next scheduled time; null unless it is active.
             */
            next_slot: string | null;
            /**
             * Failure Count
             * @description How many runs have failed in a row.
             */
            failure_count: number;
            /**
             * Origin Platform
             * @description Where it was made.
             */
            origin_platform: string;
            /**
             * Origin Session Id
             * @description The conversation in which it was made.
             */
            origin_session_id: string | null;
            last_run: components["schemas"]["LastRunJson"] | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
        };
        /**
         * JobOptionsJson
         * @description What you can choose from when you make a job.
         */
        JobOptionsJson: {
            /**
             * Timezone
             * @description Your time zone, or the server's if you have chosen none.
             */
            timezone: string;
            /**
             * Toolsets
             * @description The toolsets that you can grant.
             */
            toolsets: components["schemas"]["NamedItemJson"][];
            /** Default Toolsets */
            default_toolsets: string[];
            /**
             * Targets
             * @description Targets to choose from; others can be written, too.
             */
            targets: components["schemas"]["NamedItemJson"][];
            /**
             * Fields
             * @description What a job can have besides, as a text each.
             */
            fields: components["schemas"]["FormFieldJson"][];
        };
        /**
         * JobPreviewIn
         * @description A new job or a change of one, to look at before it is made.
         */
        JobPreviewIn: {
            /**
             * Name
             * @description Its name; by default the first words of the prompt.
             */
            name?: string | null;
            /**
             * Prompt
             * @description What the agent should do.
             */
            prompt?: string | null;
            /**
             * Schedule
             * @description When it runs: `30m` (once, in 30 minutes), `every 2h`, five fields of cron by the wall clock of the time zone, or a time such as `2026-12-24 18:00`.
             * @example 0 7 * * MON-FRI
             */
            schedule?: string | null;
            /**
             * Timezone
             * @description An IANA time zone, such as Europe/Berlin; yours by default.
             * @example Europe/Vienna
             */
            timezone?: string | null;
            /**
             * Targets
             * @description Where the answer goes: `origin` (where the job is made, the default), `local` (a file), a platform (its home channel) or `platform:chat[:thread]`.
             */
            targets?: string[] | null;
            /**
             * Toolsets
             * @description The toolsets that its runs may use; `history` and `memory` by default, if you may use them.
             */
            toolsets?: string[] | null;
            /**
             * Repeat
             * @description How many scheduled runs it has; 0: without end.
             */
            repeat?: number | null;
            /**
             * Model
             * @description The model; `default` for the default.
             */
            model?: string | null;
            /**
             * Profile
             * @description A profile of the settings; `default` for none.
             */
            profile?: string | null;
            /**
             * Session Id
             * @description The conversation in which it is made; its target `origin` leads there.
             */
            session_id?: string | null;
            /**
             * Job Id
             * @description The job that it changes.
             */
            job_id?: string | null;
        };
        /**
         * JobPreviewJson
         * @description A job as it is or will be, in words.
         */
        JobPreviewJson: {
            /** Name */
            name: string;
            /** Prompt */
            prompt: string;
            /**
             * Schedule
             * @description As it is stored.
             * @example 0 7 * * MON-FRI
             */
            schedule: string;
            /**
             * Words
             * @description The schedule in words, with the time zone.
             * @example every weekday at 07:00 (Europe/Vienna)
             */
            words: string;
            /** Timezone */
            timezone: string;
            /**
             * Runs Left
             * @description Scheduled runs that are left; null: without end.
             */
            runs_left: number | null;
            /**
             * Model
             * @description The model that it has chosen; null: the default.
             */
            model: string | null;
            /** Profile */
            profile: string | null;
            /**
             * Next Slots
             * @description Its next times, at most three.
             */
            next_slots: string[];
            /**
             * Runs Per Day
             * @description On average; null: it runs once.
             */
            runs_per_day: number | null;
            /**
             * Cost Per Run Usd
             * @description Estimated, in US dollars; null: unknown, which is not free.
             */
            cost_per_run_usd: string | null;
            /**
             * Cost Per Day Usd
             * @description Estimated, in US dollars; of a job that runs once, of its run. Null: unknown, which is not free.
             */
            cost_per_day_usd: string | null;
            /** @description `runs`: the average of its last runs. `estimate`: by the length of its prompt. `unknown`: the price of the model is not known. */
            cost_basis: components["schemas"]["CostBasis"];
            /** Targets */
            targets: components["schemas"]["NamedItemJson"][];
            /** Toolsets */
            toolsets: components["schemas"]["NamedItemJson"][];
            /**
             * Used Model
             * @description The model that answers.
             */
            used_model: string;
        };
        /**
         * JobResult
         * @description What came out of a run that is done.
         * @enum {string}
         */
        JobResult: "answer" | "silent";
        /**
         * JobRunJson
         * @description One run of a job: how it ended, what came out of it, and what was delivered.
         */
        JobRunJson: {
            /** Id */
            id: string;
            /**
             * Slot
             * Format: date-time
             * @description The scheduled time; of a manual run, when it was asked for.
             */
            slot: string;
            /**
             * Slot Count
             * @description More than 1: this many times from `slot` on were missed together.
             */
            slot_count: number;
            kind: components["schemas"]["JobRunKind"];
            state: components["schemas"]["JobRunState"];
            /**
             * Reason
             * @description Why it failed, was missed or skipped.
             */
            reason: string | null;
            /** @description `silent`: the agent had nothing to report, and nothing was sent. */
            result: components["schemas"]["JobResult"] | null;
            /**
             * Refused Tools
             * @description Tools that the agent wanted to use and the job was not granted.
             */
            refused_tools: string[];
            /** Deliveries */
            deliveries: components["schemas"]["RunDeliveryJson"][];
            /** Target Errors */
            target_errors: components["schemas"]["TargetErrorJson"][];
            /**
             * Session Id
             * @description The conversation of the run.
             */
            session_id: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Started At */
            started_at: string | null;
            /** Ended At */
            ended_at: string | null;
        };
        /**
         * JobRunKind
         * @enum {string}
         */
        JobRunKind: "scheduled" | "manual";
        /**
         * JobRunState
         * @enum {string}
         */
        JobRunState: "queued" | "running" | "done" | "failed" | "missed" | "skipped";
        /**
         * JobRunsJson
         * @description Runs of a job, the newest first.
         */
        JobRunsJson: {
            /** Runs */
            runs: components["schemas"]["JobRunJson"][];
        };
        /**
         * JobState
         * @enum {string}
         */
        JobState: "proposed" | "active" | "paused" | "ended";
        /**
         * JobsJson
         * @description Jobs by name; with `all`, those of all people, the oldest first.
         */
        JobsJson: {
            /** Jobs */
            jobs: components["schemas"]["JobJson"][];
            /**
             * Next Cursor
             * @description Pass this to get the next page; null on the last page.
             */
            next_cursor: string | null;
        };
        /**
         * LastRunJson
         * @description The latest run of a job.
         */
        LastRunJson: {
            /** Id */
            id: string;
            /**
             * Slot
             * Format: date-time
             */
            slot: string;
            state: components["schemas"]["JobRunState"];
            result: components["schemas"]["JobResult"] | null;
            /** Reason */
            reason: string | null;
            /** Ended At */
            ended_at: string | null;
        };
        /**
         * LimitsIn
         * @description Limits to set. A unit that you leave out stays as it is; null means no limit, whatever config.yaml says.
         */
        LimitsIn: {
            /**
             * Usd
             * @description In US dollars, with at most 6 decimals.
             * @example 2.50
             */
            usd?: string | null;
            /** Tokens */
            tokens?: number | null;
        };
        /**
         * LinkAnswerIn
         * @description Your answer to the link that waits.
         */
        LinkAnswerIn: {
            /**
             * Answer
             * @enum {string}
             */
            answer: "confirm" | "cancel";
        };
        /**
         * LinkCodeIn
         * @description The code that your other account got with `/link`.
         */
        LinkCodeIn: {
            /** Code */
            code: string;
        };
        /**
         * LinkCodeJson
         * @description A code to send with `/link` from your other account. It is shown once.
         */
        LinkCodeJson: {
            /** Code */
            code: string;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
        };
        /**
         * LinkJson
         * @description The result of a code or an answer.
         */
        LinkJson: {
            /** Is Linked */
            is_linked: boolean;
            pending: components["schemas"]["PendingLinkJson"] | null;
            /**
             * Problem
             * @description Why nothing came of it; `text` says it in words.
             */
            problem: ("already_linked" | "both_sign_in" | "changed" | "lower_role" | "no_account" | "nothing_waits" | "too_many" | "wrong_code") | null;
            /**
             * Text
             * @description The same in words, as in a chat.
             */
            text: string;
        };
        /**
         * LinkSignInIn
         * @description A sign-in link.
         */
        LinkSignInIn: {
            /**
             * Token
             * @description The part of the link after `#`.
             */
            token: string;
        };
        /**
         * LinkedAccountJson
         * @description One of your chat accounts.
         */
        LinkedAccountJson: {
            /** Platform */
            platform: string;
            /** Account */
            account: string;
            /**
             * Is Linked
             * @description Whether it was linked to your others, and gets back what it had when unlinked.
             */
            is_linked: boolean;
        };
        /**
         * LinkingJson
         * @description Instructions for linking a phone with an account. Only owners see it, and only while the account waits for it.
         */
        LinkingJson: {
            /**
             * Instructions
             * @description In words: which app, which menu.
             */
            instructions: string;
            /**
             * Qr Code
             * @description A QR code to scan: a row of `1` (dark) and `0` (light) for each line. Draw it dark on light, with a margin of four squares.
             */
            qr_code: string[] | null;
            /**
             * Code
             * @description A code to type on the phone.
             */
            code: string | null;
            /**
             * Expires At
             * @description When it is replaced by a new one; null if that is not known.
             */
            expires_at: string | null;
        };
        /**
         * LinksJson
         * @description Your chat accounts, and the link that waits for you.
         */
        LinksJson: {
            /** Accounts */
            accounts: components["schemas"]["LinkedAccountJson"][];
            pending: components["schemas"]["PendingLinkJson"] | null;
        };
        /**
         * LogEventJson
         * @description One entry in a conversation's log.
         */
        LogEventJson: {
            /**
             * Seq
             * @description The event's number in the log.
             */
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
             * @description It was hidden by an undo, an edit or another version. It is not deleted.
             */
            hidden: boolean;
            /** @description The person who caused it. */
            person: components["schemas"]["NamedPersonJson"] | null;
            /** @description Only for kind `message`. */
            message: components["schemas"]["MessageJson"] | null;
            /**
             * Facts
             * @description Details, for all other kinds.
             */
            facts: {
                [key: string]: unknown;
            };
            /** @description For a person's message that has several versions. Not on the live stream. */
            version?: components["schemas"]["VersionJson"] | null;
        };
        /**
         * LogPageJson
         * @description A page of a conversation's log, oldest first.
         */
        LogPageJson: {
            /** Events */
            events: components["schemas"]["LogEventJson"][];
            /** Has More Before */
            has_more_before: boolean;
            /** Has More After */
            has_more_after: boolean;
        };
        /**
         * LogProcessJson
         * @description The process whose lines are listed. Other servers on the same database have their own.
         */
        LogProcessJson: {
            /** Id */
            id: string;
            /** Host */
            host: string;
            /** Pid */
            pid: number;
            /**
             * Started At
             * Format: date-time
             */
            started_at: string;
        };
        /**
         * LogRecordJson
         * @description A line of the log. Secrets are removed from it; messages of people are never in it.
         */
        LogRecordJson: {
            /** No */
            no: number;
            /** At */
            at: string;
            /** Level */
            level: string;
            /** Logger */
            logger: string;
            /** Event */
            event: string;
            /** Fields */
            fields: {
                [key: string]: string;
            };
        };
        /**
         * LogsJson
         * @description Lines of the log, oldest first.
         */
        LogsJson: {
            process: components["schemas"]["LogProcessJson"];
            /** Records */
            records: components["schemas"]["LogRecordJson"][];
            /**
             * Cursor
             * @description Pass this as `cursor` to get what is logged later.
             */
            cursor: string;
            /**
             * Is Continued
             * @description Whether these lines follow those before the given `cursor`. If not, they replace them: another process has answered, or more was logged meanwhile than is kept.
             */
            is_continued: boolean;
        };
        /**
         * MarkReadIn
         * @description The last event that you have read.
         */
        MarkReadIn: {
            /**
             * Seq
             * @description The number of the last event that you have read.
             */
            seq: number;
        };
        /**
         * MeJson
         * @description Your account, and the server that you are signed in to.
         */
        MeJson: {
            person: components["schemas"]["PersonJson"];
            sign_in_methods: components["schemas"]["SignInMethodsJson"];
            /**
             * Needs Welcome
             * @description Whether the page should offer to choose a name and a way to sign in again. True after the first link, until you set a password, add a passkey or decline.
             */
            needs_welcome: boolean;
            /** Version */
            version: string;
            /**
             * Command
             * @description How to call Palaver in a terminal of the server.
             */
            command: string;
            agent: components["schemas"]["AgentJson"];
            /**
             * Server Timezone
             * @description The time zone of people who have chosen none.
             */
            server_timezone: string;
            /**
             * Skipped Steps
             * @description The steps of setting up the server that you have skipped: `model`, `platform`.
             */
            skipped_steps: string[];
        };
        /**
         * MemberJson
         * @description A person, as the owner sees them.
         */
        MemberJson: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            role: components["schemas"]["Role"];
            /**
             * Timezone
             * @description The person's time zone, an IANA name; null: the server's.
             */
            timezone: string | null;
            /**
             * Platforms
             * @description The platforms that they have written on.
             */
            platforms: string[];
            /**
             * Chat Accounts
             * @description Their accounts on chat platforms.
             */
            chat_accounts: components["schemas"]["ChatAccountJson"][];
            /** @description How they can sign in; null if they can't. */
            sign_in_methods: components["schemas"]["SignInMethodsJson"] | null;
            /**
             * Last Seen At
             * @description When they last used the web page.
             */
            last_seen_at: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Uses Terminal
             * @description They use the terminal of the server, and therefore are always an owner.
             */
            uses_terminal: boolean;
        };
        /**
         * MemoriesJson
         * @description A page of memories, newest first.
         */
        MemoriesJson: {
            /** Memories */
            memories: components["schemas"]["MemoryJson"][];
            /**
             * Next Cursor
             * @description Pass this to get the next page; null on the last page.
             */
            next_cursor: string | null;
            agent: components["schemas"]["AgentMemoryJson"];
        };
        /**
         * MemoryIn
         * @description A fact to remember.
         */
        MemoryIn: {
            /**
             * Text
             * @example My cat is called Ada.
             */
            text: string;
        };
        /**
         * MemoryJson
         * @description A memory: one fact that the agent remembers.
         */
        MemoryJson: {
            /** Id */
            id: string;
            /** Text */
            text: string;
            /**
             * Author Name
             * @description The name of the person who saved it in its current form, if known.
             */
            author_name: string | null;
            /** Is Author */
            is_author: boolean;
            /**
             * Created At
             * Format: date-time
             * @description When it was saved in its current form.
             */
            created_at: string;
            /**
             * Shared
             * @description It belongs to a chat with several people; changing it changes it for all of them.
             */
            shared: boolean;
            /**
             * Other Names
             * @description Names of other people who can see it; at most ten.
             */
            other_names: string[];
            /**
             * Other Count
             * @description How many other people can see it.
             */
            other_count: number;
            /** @description `person`: a person wrote or edited it; `agent`: the agent saved it during a conversation; `learned`: the agent learned it from a conversation that had ended or was compacted. */
            origin: components["schemas"]["MemoryOrigin"];
            /**
             * Session Id
             * @description The conversation that it is from, if you can see that one.
             */
            session_id: string | null;
        };
        /**
         * MemoryOrigin
         * @description How a memory came about.
         * @enum {string}
         */
        MemoryOrigin: "person" | "agent" | "learned";
        /**
         * MessageIn
         * @description A message to send.
         */
        MessageIn: {
            /**
             * Content
             * @description Text, or a list of parts: text, `{type: text, text}`, or a file you uploaded, `{type: attachment, id}`.
             */
            content: string | ({
                [key: string]: unknown;
            } | string)[];
            /**
             * Key
             * @description Your own id for this message. Sending it again with the same key has no effect.
             */
            key: string;
            /** @description What to do if the agent is still answering another message. */
            busy_policy?: components["schemas"]["BusyPolicy"] | null;
            /**
             * Attachment Ids
             * @description Ids of uploaded files to attach.
             */
            attachment_ids?: string[];
            /**
             * @description `session`: the answer only appears in the conversation. `origin`: it is also sent to the chat that the conversation comes from, if that is `reachable`.
             * @default session
             */
            reply_to?: components["schemas"]["ReplyTo"];
        };
        /**
         * MessageJson
         * @description A message in the format that chat models use.
         */
        MessageJson: {
            /**
             * Role
             * @enum {string}
             */
            role: "system" | "user" | "assistant" | "tool";
            /** Content */
            content: string | unknown[] | null;
            author?: components["schemas"]["AuthorJson"] | null;
            /** Tool Calls */
            tool_calls?: unknown[] | null;
            /** Tool Call Id */
            tool_call_id?: string | null;
            /** Tool Name */
            tool_name?: string | null;
            /** Reasoning */
            reasoning?: string | null;
            /** Interrupted */
            interrupted?: boolean;
            /** Is Error */
            is_error?: boolean;
            /**
             * Duration Ms
             * @description For a tool result: how long the tool took. For the last message of an answer: how long the agent took to answer.
             */
            duration_ms?: number | null;
            /**
             * Answers Seq
             * @description The number of the message that this one answers.
             */
            answers_seq?: number | null;
            /**
             * Edited
             * @description Its author has changed it on the platform. `message_edited` events have the texts before.
             */
            edited?: boolean;
            /**
             * Sent At
             * @description When it was sent, as the platform says.
             */
            sent_at?: string | null;
            /**
             * Context
             * @description What was said in the group before it, and not to the agent. The agent sees it as a quote.
             */
            context?: components["schemas"]["QuotedMessageJson"][] | null;
            /** @description The message that it replies to. */
            replied_message?: components["schemas"]["QuotedMessageJson"] | null;
            /** @description Who sent it here, if it is neither a message nor an answer. */
            sent_by?: components["schemas"]["SentByJson"] | null;
        };
        /**
         * ModelJson
         * @description A model.
         */
        ModelJson: {
            /** Name */
            name: string;
            /**
             * Context Window
             * @description The context window in tokens; null if unknown.
             */
            context_window: number | null;
        };
        /**
         * ModelsJson
         * @description The models that you can choose.
         */
        ModelsJson: {
            /** Models */
            models: components["schemas"]["ModelJson"][];
            /** Default */
            default: string;
            /**
             * Compaction Percent
             * @description How full a model's context may get before a summary of the conversation is made; null: never.
             */
            compaction_percent: number | null;
            /**
             * Description
             * @description Describes the agent that answers, and why it was chosen.
             */
            description: string;
            /**
             * Are More Offered
             * @description `GET /api/models/offered` may list more models.
             */
            are_more_offered: boolean;
        };
        /**
         * MyAccountIn
         * @description Changes to your account. Fields that you leave out stay as they are.
         */
        MyAccountIn: {
            /** Name */
            name?: string | null;
            /**
             * Timezone
             * @description An IANA name; null: the server's time zone.
             * @example Europe/Berlin
             */
            timezone?: string | null;
        };
        /**
         * NamedItemJson
         * @description A target or a toolset, and what it is in words.
         */
        NamedItemJson: {
            /** Name */
            name: string;
            /** Words */
            words: string;
        };
        /**
         * NamedPersonJson
         * @description A person: the id, and a name to show.
         */
        NamedPersonJson: {
            /** Id */
            id: string;
            /** Name */
            name: string;
        };
        /**
         * NewPasskeyIn
         * @description A new passkey.
         */
        NewPasskeyIn: {
            /** Name */
            name: string;
            /**
             * Credential
             * @description The result of `navigator.credentials.create()` as JSON.
             */
            credential: {
                [key: string]: unknown;
            };
        };
        /**
         * NewPasswordIn
         * @description A new password.
         */
        NewPasswordIn: {
            /** Current Password */
            current_password?: string | null;
            /** New Password */
            new_password: string;
        };
        /**
         * NewPersonIn
         * @description A person to invite.
         */
        NewPersonIn: {
            /** Name */
            name: string;
            /** @default member */
            role?: components["schemas"]["Role"];
        };
        /**
         * NewProjectIn
         * @description A new project.
         */
        NewProjectIn: {
            /** Name */
            name: string;
            /**
             * Color
             * @example #3b82f6
             */
            color?: string | null;
        };
        /**
         * NewSavedPromptIn
         * @description A new saved prompt.
         */
        NewSavedPromptIn: {
            /** Name */
            name: string;
            /**
             * Text
             * @example Explain {{topic}} to {{audience}}.
             */
            text: string;
        };
        /**
         * NewSessionIn
         * @description A new conversation.
         */
        NewSessionIn: {
            /** Title */
            title?: string | null;
            /**
             * Project
             * @description One of your projects, by id or name.
             */
            project?: string | null;
            /**
             * Model
             * @description The model to use; null for the default.
             */
            model?: string | null;
            /**
             * Profile
             * @description The name of the profile to use; null for the default.
             */
            profile?: string | null;
            /**
             * Personality
             * @description The name of the personality to use.
             */
            personality?: string | null;
            /**
             * Workspace
             * @description A folder or topic that the agent is told: one line of text.
             */
            workspace?: string | null;
            /**
             * Key
             * @description Your own id for this request. Repeating it with the same key returns the same conversation.
             */
            key?: string | null;
        };
        /**
         * NewShareIn
         * @description A new shared link.
         */
        NewShareIn: {
            /**
             * Expires At
             * @description null: never. Without it, as `web.shared_link_days` says.
             */
            expires_at?: string | null;
        };
        /**
         * NewTokenIn
         * @description A new API token.
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
         * NewTokenJson
         * @description A new API token with its secret.
         */
        NewTokenJson: {
            token: components["schemas"]["TokenJson"];
            /**
             * Secret
             * @description Shown only once: store it now.
             */
            secret: string;
        };
        /**
         * NotesJson
         * @description Notes about an import: how many, and the first of them.
         */
        NotesJson: {
            /** Count */
            count: number;
            /** Listed */
            listed: string[];
        };
        /**
         * OfferedModelsJson
         * @description The models of a provider, as it says itself.
         */
        OfferedModelsJson: {
            /** Provider */
            provider: string;
            /** Title */
            title: string;
            /** Models */
            models: string[];
            /**
             * Error
             * @description Why they are not known, in the words of the provider.
             */
            error: string | null;
        };
        /**
         * OpenAIError
         * @description An error in OpenAI's format.
         */
        OpenAIError: {
            error: components["schemas"]["ErrorDetail"];
        };
        /**
         * OpenAIModel
         * @description A model.
         */
        OpenAIModel: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "model";
            /** Created */
            created: number;
            /** Owned By */
            owned_by: string;
        };
        /**
         * OpenAIModelList
         * @description The available models.
         */
        OpenAIModelList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["OpenAIModel"][];
        };
        /**
         * OwnAccountIn
         * @description One of your chat accounts.
         */
        OwnAccountIn: {
            /** Platform */
            platform: string;
            /** Account */
            account: string;
        };
        /**
         * PairingRequestJson
         * @description A stranger who asks for access. The stranger has a code, which is not shown here.
         */
        PairingRequestJson: {
            /** Id */
            id: string;
            /** Platform */
            platform: string;
            /**
             * Account
             * @description The platform's own id of the stranger, which never changes.
             */
            account: string;
            /**
             * Name
             * @description As the stranger calls themselves.
             */
            name: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
        };
        /**
         * PairingRequestsJson
         * @description Requests for access, the oldest first.
         */
        PairingRequestsJson: {
            /** Requests */
            requests: components["schemas"]["PairingRequestJson"][];
        };
        /**
         * PasskeyJson
         * @description A passkey.
         */
        PasskeyJson: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /**
             * Site
             * @description The host that it was created for; it works only there.
             */
            site: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Last Used At */
            last_used_at: string | null;
        };
        /**
         * PasskeySignInIn
         * @description A passkey.
         */
        PasskeySignInIn: {
            /**
             * Credential
             * @description The result of `navigator.credentials.get()` as JSON.
             */
            credential: {
                [key: string]: unknown;
            };
        };
        /**
         * PasskeysJson
         * @description Your passkeys, newest first.
         */
        PasskeysJson: {
            /** Passkeys */
            passkeys: components["schemas"]["PasskeyJson"][];
        };
        /**
         * PasswordSignInIn
         * @description A name and a password.
         */
        PasswordSignInIn: {
            /** Name */
            name: string;
            /** Password */
            password: string;
        };
        /**
         * PendingLinkJson
         * @description A link that waits until both sides have confirmed.
         */
        PendingLinkJson: {
            /** Other Name */
            other_name: string;
            /** Other Platform */
            other_platform: string;
            /**
             * Other Account
             * @description Only of a chat account that has sent your code.
             */
            other_account: string | null;
            /**
             * Is Issuer
             * @description Whether you have asked for the code.
             */
            is_issuer: boolean;
            /**
             * Is Confirmed
             * @description Whether you have confirmed.
             */
            is_confirmed: boolean;
            /** Is Other Confirmed */
            is_other_confirmed: boolean;
            /**
             * Shares
             * @description How much you share, by kind.
             */
            shares: {
                [key: string]: number;
            };
            /**
             * Gets
             * @description How much you get; null until the other side has confirmed.
             */
            gets: {
                [key: string]: number;
            } | null;
            /** @description The role of both afterwards; null until the side that has it has confirmed. */
            role: components["schemas"]["Role"] | null;
            /**
             * Kept By
             * @description The name of the person with whom everything new after the link stays.
             */
            kept_by: string;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
        };
        /**
         * PeopleJson
         * @description A page of people, newest first.
         */
        PeopleJson: {
            /** People */
            people: components["schemas"]["MemberJson"][];
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * PersonChangesIn
         * @description Changes to a person. Fields that you leave out stay as they are.
         */
        PersonChangesIn: {
            /** Name */
            name?: string | null;
            role?: components["schemas"]["Role"] | null;
        };
        /**
         * PersonJson
         * @description A person.
         */
        PersonJson: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            role: components["schemas"]["Role"];
            /**
             * Timezone
             * @description The person's time zone, an IANA name; null: the server's.
             */
            timezone: string | null;
        };
        /**
         * PersonalityJson
         * @description A personality: a style that is added to the agent's instructions.
         */
        PersonalityJson: {
            /** Name */
            name: string;
            /** Instructions */
            instructions: string;
        };
        /**
         * PlatformAccountJson
         * @description An account on a platform. Problems with deliveries are those of the last 24 hours.
         */
        PlatformAccountJson: {
            /**
             * Since
             * @description When it came into this state; null if it has never run.
             */
            since: string | null;
            /**
             * Name
             * @description Its name on the platform, such as `@palaver_bot`.
             */
            name: string | null;
            /**
             * Warnings
             * @description What is missing for it to work fully, in words.
             */
            warnings: string[];
            /**
             * Details
             * @description Versions, the age of a linked device and the like, in words.
             */
            details: string[];
            /**
             * Last Message At
             * @description When it last received a message.
             */
            last_message_at: string | null;
            /**
             * Error
             * @description The last problem with the connection, in words.
             */
            error: string | null;
            /** Error At */
            error_at: string | null;
            /** @description How the latest test of the connection has ended. */
            last_test: components["schemas"]["ConnectionTestJson"] | null;
            /** Platform */
            platform: string;
            /**
             * Account
             * @description Its name in the settings; empty for the only one.
             */
            account: string;
            /**
             * Configured
             * @description It is set up in the settings.
             */
            configured: boolean;
            /**
             * State
             * @description `off`: no process runs it. `linking`: it waits until an owner links it with a phone, as `linking` says. `live`: it receives and sends. `deaf`: nothing was heard from the platform for too long, so it is connected again. `refused`: the platform refuses it, or its settings are not valid; `error` says why.
             * @enum {string}
             */
            state: "off" | "connecting" | "linking" | "live" | "deaf" | "refused";
            /** @description How to link it, while its state is `linking`. Tokens do not get it. */
            linking: components["schemas"]["LinkingJson"] | null;
            /**
             * Waiting
             * @description Deliveries that are pending or being sent.
             */
            waiting: number;
            /**
             * Uncertain
             * @description Deliveries with unknown status: they may or may not have arrived.
             */
            uncertain: number;
            /**
             * Failed
             * @description Deliveries that failed and will not be retried.
             */
            failed: number;
            /**
             * Delivery Error
             * @description The error of the last failed or uncertain delivery.
             */
            delivery_error: string | null;
            /** Delivery Error At */
            delivery_error_at: string | null;
            /** @description The default chat of the platform, if it sends there. */
            home_channel: components["schemas"]["HomeChannelJson"] | null;
        };
        /**
         * PlatformFieldJson
         * @description One setting of an account, for a form: `platforms.<platform>.settings.<name>`.
         */
        PlatformFieldJson: {
            /** Name */
            name: string;
            /** Label */
            label: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "text" | "integer" | "number" | "boolean" | "choice";
            /** Help */
            help: string;
            /**
             * Where
             * @description Where to get the value.
             */
            where: string;
            /** Is Secret */
            is_secret: boolean;
            /** Is Required */
            is_required: boolean;
            /** Is List */
            is_list: boolean;
            /** Is Terminal Only */
            is_terminal_only: boolean;
            /** Choices */
            choices: string[];
            /** Pattern */
            pattern: string | null;
            /** Minimum */
            minimum: number | null;
            /** Maximum */
            maximum: number | null;
            /** Default */
            default: unknown;
            /**
             * Variable
             * @description The environment variable that can set it.
             */
            variable: string | null;
        };
        /**
         * PlatformFormJson
         * @description A platform that can be connected.
         */
        PlatformFormJson: {
            /** Platform */
            platform: string;
            /** Label */
            label: string;
            /** Summary */
            summary: string;
            /**
             * Problem
             * @description Why it can't be connected here, such as a package that is missing.
             */
            problem: string | null;
            /**
             * Steps
             * @description How to connect it.
             */
            steps: string[];
            /**
             * Needs Public Url
             * @description The platform calls this server, so `web.public_url` has to be set.
             */
            needs_public_url: boolean;
            /**
             * Can Be Linked
             * @description An account is linked with a QR code after it was saved.
             */
            can_be_linked: boolean;
            /** Fields */
            fields: components["schemas"]["PlatformFieldJson"][];
        };
        /**
         * PlatformsJson
         * @description Accounts, sorted by platform and name.
         */
        PlatformsJson: {
            /** Accounts */
            accounts: components["schemas"]["PlatformAccountJson"][];
        };
        /**
         * PoliciesJson
         * @description The default policies, and those of each platform that is set up or that you have used.
         */
        PoliciesJson: {
            default: components["schemas"]["PolicyJson"];
            /** Platforms */
            platforms: components["schemas"]["PolicyJson"][];
        };
        /**
         * PolicyJson
         * @description The policies of a platform.
         */
        PolicyJson: {
            /**
             * Platform
             * @description Null for all platforms without policies of their own.
             */
            platform: string | null;
            /**
             * Reset Rules
             * @description Empty if conversations never restart automatically.
             */
            reset_rules: components["schemas"]["ResetRuleJson"][];
            /** @description What happens to a message that arrives while the agent is busy. */
            busy_policy: components["schemas"]["BusyPolicy"];
            /** Busy Setting Key */
            busy_setting_key: string;
            /** Is Busy Default */
            is_busy_default: boolean;
        };
        /**
         * ProfileJson
         * @description A profile: the agent's instructions, model and tools for a kind of work.
         */
        ProfileJson: {
            /** Name */
            name: string;
            /**
             * Title
             * @description For people to read; empty: its name.
             */
            title: string;
            /**
             * Picture
             * @description A small picture as a data URL.
             */
            picture: string | null;
            /** Description */
            description: string;
            /**
             * Model
             * @description The model of its conversations; null for the default.
             */
            model: string | null;
            /**
             * Toolsets
             * @description It has only these of the allowed toolsets; null for all of them.
             */
            toolsets: string[] | null;
            /** @description When its conversations in chats restart; null: as those without a profile. */
            session_reset: components["schemas"]["ResetPolicyJson"] | null;
        };
        /**
         * ProfilesJson
         * @description The profiles and personalities that conversations can choose.
         */
        ProfilesJson: {
            /** Profiles */
            profiles: components["schemas"]["ProfileJson"][];
            /** Personalities */
            personalities: components["schemas"]["PersonalityJson"][];
        };
        /**
         * ProjectChangesIn
         * @description Changes to a project. Fields that you leave out stay as they are.
         */
        ProjectChangesIn: {
            /** Name */
            name?: string | null;
            /** Color */
            color?: string | null;
            /**
             * Instructions
             * @description Empty: without any.
             */
            instructions?: string | null;
        };
        /**
         * ProjectJson
         * @description A project: a folder for conversations.
         */
        ProjectJson: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Color */
            color: string | null;
            /** Session Count */
            session_count: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Instructions
             * @description What the agent is told in your own conversations of this project.
             */
            instructions: string | null;
        };
        /**
         * ProjectsJson
         * @description Your projects, sorted by name.
         */
        ProjectsJson: {
            /** Projects */
            projects: components["schemas"]["ProjectJson"][];
        };
        /**
         * ProviderPresetJson
         * @description A provider of models that many people use.
         */
        ProviderPresetJson: {
            /** Name */
            name: string;
            /** Title */
            title: string;
            /**
             * Base Url
             * @description Set `providers.<name>.base_url` to this; null: not needed.
             */
            base_url: string | null;
            /** Needs Key */
            needs_key: boolean;
            /**
             * Key Page
             * @description Where to get an API key.
             */
            key_page: string | null;
            /** Default Model */
            default_model: string | null;
        };
        /**
         * ProviderTestIn
         * @description A provider to test, with values that need not be stored.
         */
        ProviderTestIn: {
            /** Provider */
            provider: string;
            /**
             * Api Key
             * @description Null: the key of the settings.
             */
            api_key?: string | null;
            /**
             * Base Url
             * @description Null: the address of the settings. A stored key is not sent to another address.
             */
            base_url?: string | null;
            /**
             * Model
             * @description Without the provider; null: its usual model, or its first.
             */
            model?: string | null;
        };
        /**
         * ProviderTestJson
         * @description The outcome of a round trip to a model.
         */
        ProviderTestJson: {
            /** Ok */
            ok: boolean;
            /** Model */
            model: string | null;
            /** Seconds */
            seconds: number;
            /**
             * Reply
             * @description What the model has answered.
             */
            reply: string | null;
            /** Error */
            error: string | null;
            /**
             * Detail
             * @description What the provider itself said.
             */
            detail: string | null;
            /**
             * Facts
             * @description Of the error: its `code`, and the values that it mentions.
             */
            facts: {
                [key: string]: unknown;
            };
        };
        /**
         * PruneIn
         * @description The conversations to delete.
         */
        PruneIn: {
            /** Older Than Days */
            older_than_days: number;
            /** Platform */
            platform?: string | null;
            /**
             * Dry Run
             * @description Only count. Send false to delete.
             * @default true
             */
            dry_run?: boolean;
        };
        /**
         * PruneJson
         * @description A count of what was deleted, or would be.
         */
        PruneJson: {
            /** Sessions */
            sessions: number;
            /** Messages */
            messages: number;
            /**
             * Bytes
             * @description Of the logs, about.
             */
            bytes: number;
            /**
             * Oldest
             * @description The last activity of the conversation unused for longest.
             */
            oldest: string | null;
            /** Newest */
            newest: string | null;
            /** Is Dry Run */
            is_dry_run: boolean;
            /**
             * Is Complete
             * @description False: the time of one request was up. Send it again to go on.
             */
            is_complete: boolean;
        };
        /**
         * PushKeysIn
         * @description The keys of a subscription, in base64url.
         */
        PushKeysIn: {
            /** P256Dh */
            p256dh: string;
            /** Auth */
            auth: string;
        };
        /**
         * PushStatusJson
         * @description The notifications of this browser, and the key to subscribe to.
         */
        PushStatusJson: {
            /**
             * Is Enabled
             * @description Whether the operator allows notifications.
             */
            is_enabled: boolean;
            /** Is Subscribed */
            is_subscribed: boolean;
            /**
             * Server Key
             * @description The `applicationServerKey` for `PushManager.subscribe()`.
             */
            server_key: string;
        };
        /**
         * PushSubscriptionIn
         * @description The result of `PushManager.subscribe()` as JSON.
         */
        PushSubscriptionIn: {
            /** Endpoint */
            endpoint: string;
            keys: components["schemas"]["PushKeysIn"];
        };
        /**
         * QuotedMessageJson
         * @description A message of another person in the chat.
         */
        QuotedMessageJson: {
            /** Author */
            author: string | null;
            /** Text */
            text: string;
        };
        /**
         * ReadPositionJson
         * @description The last event that you have read; this number never goes down.
         */
        ReadPositionJson: {
            /** Read Seq */
            read_seq: number;
        };
        /**
         * ReadinessJson
         * @description Problems that limit the server, and the health of its accounts on chat platforms.
         */
        ReadinessJson: {
            /**
             * Status
             * @constant
             */
            status: "ok";
            /** Version */
            version: string;
            /**
             * Platforms
             * @description `problem`: an account that this server runs is not connected. `/api/platforms` says which and why.
             * @enum {string}
             */
            platforms: "ok" | "problem";
            /** Problems */
            problems: components["schemas"]["ReadinessProblemJson"][];
        };
        /**
         * ReadinessProblemJson
         * @description Something that limits the server.
         */
        ReadinessProblemJson: {
            /**
             * Code
             * @description A stable identifier for programs.
             * @enum {string}
             */
            code: "database_slow" | "database_locked" | "disk_full" | "disk_nearly_full" | "too_many_connections" | "turns_waiting";
            /** Message */
            message: string;
        };
        /**
         * ReceiptJson
         * @description What happened to a message or command. When you receive this, everything in it is stored durably.
         */
        ReceiptJson: {
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "accepted" | "queued" | "merged" | "steered" | "interrupting" | "command" | "duplicate" | "rejected" | "recorded" | "ignored";
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
             * Turns Ahead
             * @description How many turns of the same conversation come first.
             */
            turns_ahead: number;
            /**
             * Reply
             * @description Palaver's own reply to a command or refused message, in Markdown.
             */
            reply: string | null;
            /**
             * Facts
             * @description The result of a command, for programs.
             */
            facts: {
                [key: string]: unknown;
            };
        };
        /**
         * ReplyTo
         * @description The destination of the answer to a message from the web, the terminal or the API.
         * @enum {string}
         */
        ReplyTo: "session" | "origin";
        /**
         * ReportJson
         * @description A count of what an import would bring in, or has brought in.
         */
        ReportJson: {
            /** Format */
            format: string;
            /**
             * Dry Run
             * @description True: this is what would come in.
             */
            dry_run: boolean;
            /**
             * Counts
             * @description By what is counted: `conversations`, `messages`, `unchanged`, …
             */
            counts: {
                [key: string]: number;
            };
            /** @description What could not be read or stored, and where. */
            problems: components["schemas"]["NotesJson"];
            /** @description What was stored several times there and comes in once. */
            folded: components["schemas"]["NotesJson"];
            /** @description What is different here, or was left as it is. */
            notes: components["schemas"]["NotesJson"];
        };
        /**
         * ResetMode
         * @description The triggers of an automatic reset.
         * @enum {string}
         */
        ResetMode: "none" | "idle" | "daily" | "both";
        /**
         * ResetPolicyJson
         * @description The times when conversations restart automatically.
         */
        ResetPolicyJson: {
            mode: components["schemas"]["ResetMode"];
            /**
             * Idle Minutes
             * @description With `idle` and `both`: restart after this long without a human message.
             */
            idle_minutes: number;
            /**
             * At Hour
             * @description With `daily` and `both`: restart at this hour.
             */
            at_hour: number;
            /**
             * Timezone
             * @description The time zone of `at_hour`.
             */
            timezone: string;
            /**
             * Notify
             * @description Whether Palaver tells the person about a restart.
             */
            notify: boolean;
        };
        /**
         * ResetRuleJson
         * @description A rule for when conversations restart automatically.
         */
        ResetRuleJson: {
            mode: components["schemas"]["ResetMode"];
            /**
             * Idle Minutes
             * @description With `idle` and `both`: restart after this long without a human message.
             */
            idle_minutes: number;
            /**
             * At Hour
             * @description With `daily` and `both`: restart at this hour.
             */
            at_hour: number;
            /**
             * Timezone
             * @description The time zone of `at_hour`.
             */
            timezone: string;
            /**
             * Notify
             * @description Whether Palaver tells the person about a restart.
             */
            notify: boolean;
            /**
             * Chat Types
             * @description The types of chats that this rule applies to.
             */
            chat_types: components["schemas"]["ChatType"][];
            /**
             * Setting Key
             * @description The setting behind it.
             * @example reset_by_platform.telegram
             */
            setting_key: string;
            /**
             * Is Default
             * @description The operator has not changed this setting.
             */
            is_default: boolean;
        };
        /**
         * RetentionJson
         * @description The policy that the operator has set.
         */
        RetentionJson: {
            /**
             * Max Age Days
             * @description Conversations are deleted so long after the last activity.
             */
            max_age_days: number | null;
            /**
             * Max Database Mb
             * @description Above this size, those unused for longest are deleted (SQLite).
             */
            max_database_mb: number | null;
            /**
             * Text
             * @description The policy as a sentence.
             */
            text: string;
        };
        /**
         * RetryIn
         * @description The answer to regenerate.
         */
        RetryIn: {
            /**
             * Key
             * @description Your own id for this request. Repeating it with the same key has no effect.
             */
            key?: string | null;
            /**
             * Seq
             * @description The number of the message to ask again; null: the last one.
             */
            seq?: number | null;
        };
        /**
         * RewrittenFileJson
         * @description The space that rewriting the database file has saved.
         */
        RewrittenFileJson: {
            /**
             * Saved Bytes
             * @description How many bytes smaller the file is. Null: PostgreSQL.
             */
            saved_bytes: number | null;
        };
        /**
         * Role
         * @enum {string}
         */
        Role: "owner" | "member" | "guest";
        /**
         * RunDeliveryJson
         * @description What became of one message with the answer of a run.
         */
        RunDeliveryJson: {
            /** Id */
            id: string;
            /**
             * Target
             * @description Where it goes, such as `telegram:42`.
             */
            target: string;
            /** Platform */
            platform: string;
            state: components["schemas"]["DeliveryState"];
            /** Error */
            error: string | null;
            /** Ended At */
            ended_at: string | null;
        };
        /**
         * SavedPromptChangesIn
         * @description Changes to a saved prompt. Fields that you leave out stay as they are.
         */
        SavedPromptChangesIn: {
            /** Name */
            name?: string | null;
            /** Text */
            text?: string | null;
        };
        /**
         * SavedPromptJson
         * @description A saved prompt. `{{word}}` in its text is a placeholder.
         */
        SavedPromptJson: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Text */
            text: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
        };
        /**
         * SavedPromptsJson
         * @description Your saved prompts, sorted by name.
         */
        SavedPromptsJson: {
            /** Prompts */
            prompts: components["schemas"]["SavedPromptJson"][];
            /**
             * Fields
             * @description What a prompt can have besides its name and its text.
             */
            fields: components["schemas"]["FormFieldJson"][];
        };
        /**
         * Scope
         * @description A right of a token.
         * @enum {string}
         */
        Scope: "read" | "write" | "chat" | "admin";
        /**
         * SearchHitJson
         * @description A message that matches.
         */
        SearchHitJson: {
            /** Session Id */
            session_id: string;
            /** Title */
            title: string | null;
            /**
             * Archived
             * @description Whether the conversation is archived.
             */
            archived: boolean;
            /**
             * Owner Name
             * @description The name of the person whose conversation it is; only in requests with `all`.
             */
            owner_name: string | null;
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
             * Highlights
             * @description The parts of the snippet to highlight: start and end (exclusive) of each.
             */
            highlights: [
                number,
                number
            ][];
        };
        /**
         * SearchPeopleJson
         * @description People in your conversations, by name.
         */
        SearchPeopleJson: {
            /** People */
            people: components["schemas"]["NamedPersonJson"][];
        };
        /**
         * SearchResultsJson
         * @description A page of matching messages, newest first.
         */
        SearchResultsJson: {
            /** Hits */
            hits: components["schemas"]["SearchHitJson"][];
            /**
             * Is Indexing
             * @description Whether some messages, for example of an import, are not indexed yet and may be missing. Search again in a moment.
             */
            is_indexing: boolean;
            /**
             * Next Cursor
             * @description Pass this as `cursor` to get the next page; null on the last page.
             */
            next_cursor: string | null;
        };
        /**
         * SentByJson
         * @description A job, or the agent at the request of a person in another conversation.
         */
        SentByJson: {
            /**
             * Kind
             * @enum {string}
             */
            kind: "job" | "agent";
            /**
             * Name
             * @description The name of the job, or of the person who asked the agent.
             */
            name: string;
            /** Job Id */
            job_id: string | null;
            /** Run Id */
            run_id: string | null;
            /**
             * Session Id
             * @description The conversation of the job's run, or in which the agent was asked.
             */
            session_id: string | null;
        };
        /**
         * ServerSignInMethodsJson
         * @description The ways to sign in on this server, besides with a link.
         */
        ServerSignInMethodsJson: {
            /** Password */
            password: boolean;
            /** Passkey */
            passkey: boolean;
            /**
             * Link Command
             * @description What the owner runs on the server for a new link.
             */
            link_command: string;
        };
        /**
         * SessionChangesIn
         * @description Changes to a conversation. Fields that you leave out stay as they are.
         */
        SessionChangesIn: {
            /**
             * Title
             * @description Null removes the title.
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
             * @description By id or name. Null removes the conversation from its project.
             */
            project?: string | null;
            /**
             * Model
             * @description Null resets to the default.
             */
            model?: string | null;
            /**
             * Profile
             * @description Null resets to the default.
             */
            profile?: string | null;
            /**
             * Personality
             * @description Null removes the personality.
             */
            personality?: string | null;
            /**
             * Workspace
             * @description Null removes the workspace.
             */
            workspace?: string | null;
            /** @description Null resets to the server's setting. */
            busy_policy?: components["schemas"]["BusyPolicy"] | null;
            /**
             * Toolsets
             * @description Turns toolsets on or off, by name; others stay as they are. Null turns all allowed ones on.
             */
            toolsets?: {
                [key: string]: boolean;
            } | null;
        };
        /**
         * SettingJson
         * @description One setting now.
         */
        SettingJson: {
            /**
             * Key
             * @example turns.max_running
             */
            key: string;
            /**
             * Template
             * @description The key of its template, with `<name>` for names that you choose.
             */
            template: string;
            /**
             * Value
             * @description Null for a secret.
             */
            value: unknown;
            /**
             * Is Set
             * @description Whether it has a value that is not the default.
             */
            is_set: boolean;
            /** Is Secret */
            is_secret: boolean;
            /**
             * Hint
             * @description The last characters of a long secret in the database.
             */
            hint: string | null;
            source: components["schemas"]["SettingSourceJson"];
            /**
             * Can Change
             * @description Whether it can be changed with this API.
             */
            can_change: boolean;
            /**
             * Problem
             * @description Why the stored value can't be used; the default applies instead.
             */
            problem: string | null;
        };
        /**
         * SettingProblemJson
         * @description A stored value that can't be used.
         */
        SettingProblemJson: {
            /** Key */
            key: string;
            /** Message */
            message: string;
        };
        /**
         * SettingSourceJson
         * @description Where the value of a setting comes from.
         */
        SettingSourceJson: {
            /**
             * Kind
             * @description `file` (config.yaml) and `environment` pin a value: it can be changed only there.
             * @enum {string}
             */
            kind: "default" | "database" | "file" | "environment";
            /**
             * Variable
             * @description The environment variable that sets it.
             */
            variable: string | null;
            /**
             * Line
             * @description The line of config.yaml.
             */
            line: number | null;
            /**
             * Set At
             * @description When it was set in the database.
             */
            set_at: string | null;
            /**
             * Set By
             * @description The id of the person who has set it.
             */
            set_by: string | null;
        };
        /**
         * SettingTemplateJson
         * @description A setting that exists, or all settings of one kind, with what a form needs.
         */
        SettingTemplateJson: {
            /**
             * Key
             * @example providers.<name>.api_key
             */
            key: string;
            /**
             * Kind
             * @description text, long_text, url, number, integer, boolean, choice, timezone, model or image. `adapter`: the form of its platform describes it.
             */
            kind: string;
            /** Is List */
            is_list: boolean;
            /**
             * Is Optional
             * @description Null is a valid value.
             */
            is_optional: boolean;
            /** Choices */
            choices: string[];
            /** Minimum */
            minimum: number | null;
            /** Maximum */
            maximum: number | null;
            /**
             * Pattern
             * @description A regular expression for the whole text.
             */
            pattern: string | null;
            /**
             * Allowed
             * @description The valid values, in words.
             */
            allowed: string;
            /** Default */
            default: unknown;
            /** Is Secret */
            is_secret: boolean;
            /**
             * Needs Restart
             * @description A change applies after the server was started again.
             */
            needs_restart: boolean;
            /**
             * Is Terminal Only
             * @description It starts a program, so it can be changed only on the server itself.
             */
            is_terminal_only: boolean;
            /**
             * Unstorable Reason
             * @description Why it can be set only in config.yaml or the environment.
             */
            unstorable_reason: string | null;
            /** Help */
            help: string;
        };
        /**
         * SettingsChangeJson
         * @description A change in the history.
         */
        SettingsChangeJson: {
            /** Number */
            number: number;
            /**
             * Changed At
             * Format: date-time
             */
            changed_at: string;
            /** Person Id */
            person_id: string | null;
            /** Person Name */
            person_name: string | null;
            /**
             * Origin
             * @enum {string}
             */
            origin: "page" | "terminal";
            /**
             * Undoes
             * @description The change that this one has undone.
             */
            undoes: number | null;
            /** Items */
            items: components["schemas"]["ChangeItemJson"][];
        };
        /**
         * SettingsChangedJson
         * @description The settings after a change. They are in force on this server now, and on others within a second.
         */
        SettingsChangedJson: {
            /** Version */
            version: number;
            /**
             * Change
             * @description The number of the change in the history; null if nothing was different.
             */
            change: number | null;
            /** Changed */
            changed: string[];
            /** Pending Restart */
            pending_restart: string[];
        };
        /**
         * SettingsHistoryJson
         * @description Changes, newest first.
         */
        SettingsHistoryJson: {
            /** Changes */
            changes: components["schemas"]["SettingsChangeJson"][];
            /**
             * Next Cursor
             * @description Pass it as `before` to get older changes; null on the last page.
             */
            next_cursor: number | null;
        };
        /**
         * SettingsIn
         * @description Changes of settings: all of them are stored, or none.
         */
        SettingsIn: {
            /**
             * Set
             * @description Values by key. A section can be set as a whole: its keys are set.
             * @example {
             *       "providers.openai.api_key": "sk-…",
             *       "turns.max_running": 4
             *     }
             */
            set?: {
                [key: string]: unknown;
            };
            /**
             * Unset
             * @description Keys, or sections with all their keys.
             */
            unset?: string[];
            /**
             * Expected Version
             * @description Refuse the change (409) if the settings have another version by now.
             */
            expected_version?: number | null;
        };
        /**
         * SettingsJson
         * @description All settings.
         */
        SettingsJson: {
            /**
             * Version
             * @description Pass it as `expected_version`, so that no change of another person is lost.
             */
            version: number;
            /** Settings */
            settings: components["schemas"]["SettingJson"][];
            /** Templates */
            templates: components["schemas"]["SettingTemplateJson"][];
            /** Platforms */
            platforms: components["schemas"]["PlatformFormJson"][];
            /** Providers */
            providers: components["schemas"]["ProviderPresetJson"][];
            /**
             * Problems
             * @description Stored values that can't be used, and what to do.
             */
            problems: components["schemas"]["SettingProblemJson"][];
            /**
             * Pending Restart
             * @description Settings that were changed and apply after a restart.
             */
            pending_restart: string[];
        };
        /**
         * SetupStep
         * @description A step of setting up the server that the page offers to owners.
         * @enum {string}
         */
        SetupStep: "model" | "platform";
        /**
         * SetupStepIn
         * @description A step of setting up the server, to skip it or to offer it again.
         */
        SetupStepIn: {
            step: components["schemas"]["SetupStep"];
            /** Skipped */
            skipped: boolean;
        };
        /**
         * ShareExpiryIn
         * @description When a link expires.
         */
        ShareExpiryIn: {
            /**
             * Expires At
             * @description null: never.
             */
            expires_at: string | null;
        };
        /**
         * ShareJson
         * @description A shared copy of a conversation.
         */
        ShareJson: {
            /** Id */
            id: string;
            /** Session Id */
            session_id: string;
            /** @description The person who shares it. */
            person: components["schemas"]["NamedPersonJson"];
            /** Title */
            title: string | null;
            /** Message Count */
            message_count: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Expires At
             * @description From then on the link says that it has expired; null: never.
             */
            expires_at: string | null;
            /**
             * Secret
             * @description Opens the copy.
             */
            secret: string;
            /**
             * Path
             * @description The path of the page that shows it. The secret comes after `#`, which browsers do not send to any server.
             */
            path: string;
        };
        /**
         * SharedConversationJson
         * @description A conversation as it was when it was shared, without ids, names of other people, tool calls and files.
         */
        SharedConversationJson: {
            /** Title */
            title: string | null;
            /**
             * Shared At
             * Format: date-time
             */
            shared_at: string;
            /** Messages */
            messages: components["schemas"]["SharedMessageJson"][];
        };
        /**
         * SharedMessageJson
         * @description A message in a shared conversation.
         */
        SharedMessageJson: {
            /**
             * Role
             * @enum {string}
             */
            role: "assistant" | "user";
            /**
             * Name
             * @description The name of the person who shares it; for others `Person`, with a number if there are several; null for the agent.
             */
            name: string | null;
            /** Text */
            text: string;
        };
        /**
         * SharesJson
         * @description Shares, newest first.
         */
        SharesJson: {
            /** Shares */
            shares: components["schemas"]["ShareJson"][];
            /**
             * Next Cursor
             * @description Pass this as `cursor` to get the next page; null on the last page.
             */
            next_cursor: string | null;
            /**
             * Default Days
             * @description After how many days a new link expires by default (`web.shared_link_days`); null: never.
             */
            default_days: number | null;
        };
        /**
         * SignInJson
         * @description The person who is signed in now.
         */
        SignInJson: {
            person: components["schemas"]["PersonJson"];
        };
        /**
         * SignInLinkJson
         * @description A link that signs a person in once. It is shown only here.
         */
        SignInLinkJson: {
            /**
             * Url
             * @description The secret comes after `#`, which browsers do not send to any server.
             */
            url: string;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
            /**
             * Is Local Only
             * @description Whether it works only on the machine of the server.
             */
            is_local_only: boolean;
        };
        /**
         * SignInMethodsJson
         * @description The ways in which a person can sign in, besides with a link.
         */
        SignInMethodsJson: {
            /** Has Password */
            has_password: boolean;
            /** Passkey Count */
            passkey_count: number;
        };
        /**
         * SpeechJson
         * @description The features for speech that this server has.
         */
        SpeechJson: {
            /** Can Transcribe */
            can_transcribe: boolean;
            /** Can Speak */
            can_speak: boolean;
            /**
             * Max Seconds
             * @description How long a recording may be.
             */
            max_seconds: number;
            /**
             * Transcription Engine
             * @description A model or a program; null for everyone but owners.
             */
            transcription_engine: string | null;
            /**
             * Speaking Engine
             * @description The same, for reading aloud.
             */
            speaking_engine: string | null;
            /**
             * Problems
             * @description Settings that don't work; empty for everyone but owners.
             */
            problems: string[];
        };
        /**
         * StopIn
         * @description Options for stopping the answer.
         */
        StopIn: {
            /**
             * Clear Queue
             * @description Also clear the queue.
             * @default false
             */
            clear_queue?: boolean;
            /** Key */
            key?: string | null;
        };
        /**
         * StorageJson
         * @description The space that your files take. Equal files are stored, and counted, once.
         */
        StorageJson: {
            /** Used Bytes */
            used_bytes: number;
            /** Limit Bytes */
            limit_bytes: number;
            /** File Count */
            file_count: number;
        };
        /**
         * StreamOptions
         * @description Options of a stream.
         */
        StreamOptions: {
            /**
             * Include Usage
             * @default false
             */
            include_usage?: boolean;
        };
        /**
         * TargetErrorJson
         * @description A target that nothing could be sent to.
         */
        TargetErrorJson: {
            /** Target */
            target: string;
            /** Error */
            error: string;
        };
        /**
         * TemporaryMessageIn
         * @description One message of a temporary conversation.
         */
        TemporaryMessageIn: {
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant";
            /** Content */
            content: string;
            /**
             * Interrupted
             * @description For an answer: it was stopped before it was complete.
             * @default false
             */
            interrupted?: boolean;
        };
        /**
         * TemporaryQuestionIn
         * @description A temporary conversation, whose last message is to be answered.
         */
        TemporaryQuestionIn: {
            /** Messages */
            messages: components["schemas"]["TemporaryMessageIn"][];
            /**
             * Model
             * @description None: that of the profile, or the default.
             */
            model?: string | null;
            /** Profile */
            profile?: string | null;
            /** Personality */
            personality?: string | null;
        };
        /**
         * TokenJson
         * @description An API token, without its secret.
         */
        TokenJson: {
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
            /** Last Used At */
            last_used_at: string | null;
            /** Expires At */
            expires_at: string | null;
        };
        /**
         * TokensJson
         * @description Your API tokens, newest first.
         */
        TokensJson: {
            /** Tokens */
            tokens: components["schemas"]["TokenJson"][];
        };
        /**
         * ToolJson
         * @description A tool.
         */
        ToolJson: {
            /** Name */
            name: string;
            /** Description */
            description: string;
            /**
             * Problem
             * @description Why the agent can't use it; null if it can.
             */
            problem: string | null;
        };
        /**
         * ToolsetJson
         * @description A group of tools.
         */
        ToolsetJson: {
            /**
             * Name
             * @description `history`, `memory`, or `mcp:` with the name of a server.
             * @example memory
             */
            name: string;
            /** Description */
            description: string;
            /**
             * Enabled
             * @description False if the toolset is turned off in this conversation.
             */
            enabled: boolean;
            /**
             * Tools
             * @description Empty while the toolset's server cannot be reached.
             */
            tools: components["schemas"]["ToolJson"][];
        };
        /**
         * ToolsetsJson
         * @description The toolsets of a conversation.
         */
        ToolsetsJson: {
            /** Toolsets */
            toolsets: components["schemas"]["ToolsetJson"][];
        };
        /**
         * TranscriptJson
         * @description The words of a recording.
         */
        TranscriptJson: {
            /** Text */
            text: string;
        };
        /**
         * UnlinkIn
         * @description A chat account to take out of a person.
         */
        UnlinkIn: {
            /** Platform */
            platform: string;
            /** Account */
            account: string;
        };
        /**
         * UpdateNotesJson
         * @description The changes in the running version.
         */
        UpdateNotesJson: {
            /** Version */
            version: string;
            /**
             * Text
             * @description Markdown; empty if there are no notes.
             */
            text: string;
        };
        /**
         * UsageGrouping
         * @description By what a usage report groups the tokens and cost of a period.
         * @enum {string}
         */
        UsageGrouping: "day" | "model" | "platform" | "person" | "session";
        /**
         * UsageReportJson
         * @description Usage by group, and in total.
         */
        UsageReportJson: {
            /** Rows */
            rows: components["schemas"]["UsageRowJson"][];
            total: components["schemas"]["UsageRowJson"];
        };
        /**
         * UsageRowJson
         * @description The usage of one group.
         */
        UsageRowJson: {
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
            /**
             * Cost Usd
             * @description The cost in US dollars; null if it is unknown.
             */
            cost_usd: string | null;
            /**
             * Unpriced Turns
             * @description Turns whose cost is unknown and not part of `cost_usd`.
             */
            unpriced_turns: number;
            /**
             * Group
             * @description A day, a model, a platform, or the id of a person or conversation; null for usage without one.
             */
            group: string | null;
            /** Label */
            label: string;
            /** Turns */
            turns: number;
        };
        /**
         * UsedUpBudgetJson
         * @description A budget that you share with others and that is used up. What others have spent is not shown.
         */
        UsedUpBudgetJson: {
            scope: components["schemas"]["BudgetScope"];
            /**
             * Subject
             * @description The id of a person or job, or the name of a profile; empty for all together, or each of them.
             */
            subject: string;
            period: components["schemas"]["BudgetPeriod"];
            /**
             * Resets At
             * Format: date-time
             */
            resets_at: string;
            /**
             * Timezone
             * @description The time zone in which days and months begin.
             */
            timezone: string;
        };
        /**
         * VersionJson
         * @description The version of a message that is shown. A version is a message with everything that followed it.
         */
        VersionJson: {
            /**
             * Number
             * @description Of the version that is shown, from 1.
             */
            number: number;
            /**
             * Count
             * @description How many versions there are.
             */
            count: number;
            /**
             * Has Edits
             * @description The message was edited; otherwise only its answer was regenerated.
             */
            has_edits: boolean;
        };
        /**
         * UndoIn
         * @description The number of turns to undo.
         */
        palaver__web__session_schemas__UndoIn: {
            /**
             * Turns
             * @default 1
             */
            turns?: number;
            /** Key */
            key?: string | null;
        };
        /**
         * UndoIn
         * @description The change to undo.
         */
        palaver__web__settings_schemas__UndoIn: {
            /** Change */
            change: number;
            /** Expected Version */
            expected_version?: number | null;
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
