"""The settings of the agent, its turns and the web server: declared once, as the values that the rooms use.

A class that is a `Section` is a section of config.yaml; `validators` says how its fields are declared. `TurnRules` adds
to the section `turns` what turns need of other sections, and `palaver.config.settings` builds it.

Keys and headers may be secret: every repr leaves them out.
"""

# Without `from __future__ import annotations`: the annotations are data, and reading them must cost nothing.

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from typing import Annotated, Final

from palaver.config import validators as v
from palaver.config.budget_rules import BudgetRules, TokenPrice
from palaver.config.validators import Many, Named, Section, SentTo, Variable
from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.texts import ENGLISH, say
from palaver.people.model import DEFAULT_GUEST_COMMANDS, Role
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS, GatewayConfig
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.sessions.targets import format_source_target
from palaver.sessions.turn import BusyPolicy

DEFAULT_MESSAGES_PER_MINUTE: Mapping[Role, int] = {Role.MEMBER: 60, Role.GUEST: 20}
DEFAULT_TOOLSET_ROLES = (Role.OWNER, Role.MEMBER)

_Arguments = Many[Annotated[str, v.ARGUMENT_TEXT]]


# -- the agent ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ResetSection(Section):
    """The automatic restart of conversations: a `ResetPolicy`, to which the time zone of the file may be added."""

    mode: Annotated[
        ResetMode,
        v.RESET_MODE,
        Variable("PALAVER_SESSION_RESET_MODE", "session_reset.mode"),
        "When conversations restart: never, after a time without messages, every day, or whichever comes first.",
    ] = ResetPolicy.mode
    idle_minutes: Annotated[
        int,
        v.IDLE_MINUTES,
        Variable("PALAVER_SESSION_RESET_IDLE_MINUTES", "session_reset.idle_minutes"),
        "Restart after this many minutes without a message from a person.",
    ] = ResetPolicy.idle_minutes
    at_hour: Annotated[
        int,
        v.HOUR_OF_DAY,
        Variable("PALAVER_SESSION_RESET_AT_HOUR", "session_reset.at_hour"),
        "Restart every day at this hour, local time.",
    ] = ResetPolicy.at_hour
    timezone: Annotated[str | None, v.TIMEZONE, "The time zone of the hour; empty: the time zone of this gateway."] = (
        None
    )
    notify: Annotated[bool, v.BOOL, "Tell people when their conversation has restarted."] = ResetPolicy.notify


@dataclass(frozen=True, kw_only=True)
class ProfileResetSection(ResetSection):
    """The automatic restart of conversations with a profile; without a mode, as those without a profile."""

    mode: Annotated[
        ResetMode | None,
        v.RESET_MODE,
        "When conversations with this profile restart: never, after a time without messages, every day, or whichever"
        " comes first; empty: as without the profile.",
    ] = None  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Provider(Section):
    """Access to a model provider."""

    api_key: Annotated[
        str | None,
        v.API_KEY,
        SentTo("base_url"),
        Variable("OPENAI_API_KEY", "providers.openai.api_key"),
        Variable("ANTHROPIC_API_KEY", "providers.anthropic.api_key"),
        Variable("GEMINI_API_KEY", "providers.google.api_key"),
        Variable("GOOGLE_API_KEY", "providers.google.api_key"),
        "Your API key. It is stored encrypted and never shown.",
    ] = field(default=None, repr=False)
    base_url: Annotated[
        str | None,
        v.URL,
        Variable("OPENAI_BASE_URL", "providers.openai.base_url"),
        "The address of the API; empty: the provider's own.",
    ] = field(default=None, repr=False)  # may contain a password


@dataclass(frozen=True, kw_only=True)
class McpServer(Section):
    """An MCP server with tools: a command to start, or a URL to connect to."""

    command: Annotated[str | None, v.COMMAND, v.STARTS_PROGRAM, "The program to start."] = None
    args: Annotated[_Arguments, v.STARTS_PROGRAM, SentTo("command"), "Its arguments."] = field(default=(), repr=False)
    env: Named[
        Annotated[str, v.VARIABLE_NAME],
        Annotated[str, v.ARGUMENT_TEXT, v.STARTS_PROGRAM, SentTo("command"), "A variable in its environment."],
    ] = field(default_factory=dict, repr=False)
    url: Annotated[str | None, v.URL, "The address of the MCP server."] = field(default=None, repr=False)
    headers: Named[
        Annotated[str, v.HEADER_NAME],
        Annotated[str, v.HEADER_VALUE, SentTo("url"), "An HTTP header that is sent with every request."],
    ] = field(default_factory=dict, repr=False)
    enabled: Annotated[bool, v.BOOL, "Use this server."] = True

    def find_conflict(self) -> str | None:
        if (self.command is None) == (self.url is None):
            return say("settings.command_or_url", "set either command or url")
        if self.url is not None and (self.args or self.env):
            return say("settings.args_without_command", "args and env can only be used with command, not with url")
        if self.command is not None and self.headers:
            return say("settings.headers_without_url", "headers can only be used with url, not with command")
        return None


@dataclass(frozen=True, kw_only=True)
class Profile(Section):
    """A profile that a conversation can use; what it leaves out is as without a profile."""

    description: Annotated[str | None, v.ANY_TEXT, "What the profile is for."] = None
    title: Annotated[str | None, v.ANY_TEXT, "The name that people see; empty: the name of the profile."] = None
    picture: Annotated[str | None, v.PICTURE, "A small picture that people see beside the name."] = field(
        default=None, repr=False
    )
    instructions: Annotated[str | None, v.ANY_LONG_TEXT, "Instructions for the agent, instead of the general ones."] = (
        None
    )
    model: Annotated[str | None, v.FALLBACK_MODEL, "The model of conversations that have chosen none."] = None
    toolsets: Annotated[
        tuple[Annotated[str, v.PROFILE_TOOLSET], ...] | None,
        "The tools that the agent has with this profile; empty: all that are allowed.",
    ] = None
    session_reset: ProfileResetSection = ProfileResetSection()


@dataclass(frozen=True, kw_only=True)
class SpeechRules(Section):
    """The engines that turn speech into text and text into speech."""

    transcription: Annotated[
        str,
        v.SPEECH_ENGINE,
        "What turns recordings into text: auto, off, command, or a model such as openai:whisper-1.",
    ] = "auto"
    speaking: Annotated[
        str,
        v.SPEECH_ENGINE,
        "What reads answers aloud: auto, off, command, or a model such as openai:gpt-4o-mini-tts.",
    ] = "auto"
    voice: Annotated[str | None, v.VOICE, "The voice that reads answers aloud; empty: the engine's own."] = None
    language: Annotated[
        str | None, v.LANGUAGE, "The language that people speak, such as de; empty: it is detected."
    ] = None
    transcribe_voice_notes: Annotated[
        bool, v.BOOL, "Turn voice messages of chats into text before the agent answers."
    ] = True
    max_minutes: Annotated[int, v.number(1, 60, v.MINUTES), "How long a recording may be, in minutes."] = 15
    transcription_command: Annotated[
        _Arguments,
        v.STARTS_PROGRAM,
        "The program that prints the text of the recording {file}, with its arguments.",
    ] = ()
    speaking_command: Annotated[
        _Arguments, v.STARTS_PROGRAM, "The program that reads text from its input and writes audio to its output."
    ] = ()


@dataclass(frozen=True, kw_only=True)
class AgentProfile(Section):
    """The configuration of the agent: its models, instructions and tool servers, and what conversations choose from."""

    model: Annotated[str, v.MODEL, Variable("PALAVER_MODEL"), "The default model. auto uses the first that works."] = (
        "auto"
    )
    fallback_models: Annotated[
        Many[Annotated[str, v.FALLBACK_MODEL]],
        "Models to try in this order when the default model can't be reached.",
    ] = ()
    # By model; these override what Palaver knows.
    context_windows: Named[
        Annotated[str, v.PROVIDER_MODEL],
        Annotated[
            int,
            v.number(500, 100_000_000, v.TOKENS),
            "How many tokens a model can read at once, if Palaver does not know it.",
        ],
    ] = field(default_factory=dict)
    prices: Mapping[str, TokenPrice] = field(default_factory=dict)
    instructions: Annotated[str | None, v.ANY_LONG_TEXT, "Instructions for the agent in every conversation."] = None
    profiles: Named[Annotated[str, v.CHOICE_NAME], Profile] = field(default_factory=dict)
    personalities: Named[
        Annotated[str, v.CHOICE_NAME], Annotated[str, v.LONG_TEXT, "Instructions about the style of the answers."]
    ] = field(default_factory=dict)
    providers: Named[Annotated[str, v.PROVIDER_NAME], Provider] = field(default_factory=dict)
    mcp_servers: Named[Annotated[str, v.SERVER_NAME], McpServer] = field(default_factory=dict)
    speech: SpeechRules = SpeechRules()


@dataclass(frozen=True, kw_only=True)
class ChatChoices(Section):
    """What the agent uses in one chat, whatever people there choose; they choose what is left out."""

    profile: Annotated[str | None, v.CHOICE_NAME, "The profile of all conversations in this chat."] = None
    model: Annotated[str | None, v.FALLBACK_MODEL, "The model of all conversations in this chat."] = None
    toolsets: Annotated[
        tuple[Annotated[str, v.PROFILE_TOOLSET], ...] | None,
        "The tools that the agent has in this chat; empty: all that are allowed.",
    ] = None


NO_CHAT_CHOICES: Final = ChatChoices()


# -- turns --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetRule:
    """On which platforms, and for which roles, a toolset is available."""

    platforms: frozenset[Platform] | None = None  # None: on every platform
    roles: frozenset[Role] = frozenset(DEFAULT_TOOLSET_ROLES)

    def allows(self, platform: Platform, role: Role) -> bool:
        return role in self.roles and (self.platforms is None or platform in self.platforms)


@dataclass(frozen=True, kw_only=True)
class CompactionRules(Section):
    """Summaries that replace the older messages of a conversation for the agent."""

    enabled: Annotated[  # False: no automatic summaries; /compress still works
        bool, v.BOOL, "Summarize older messages for the agent when a conversation gets too long for the model."
    ] = True
    at_percent: Annotated[
        int,
        v.PERCENT_OF_CONTEXT,
        "How full the model's context may get before a summary is made, in percent.",
    ] = 85
    keep_exchanges: Annotated[int, v.number(1, 50), "How many of the last exchanges the agent still sees in full."] = 2
    notify: Annotated[bool, v.BOOL, "Tell people in a chat when a summary was made."] = True

    def is_due(self, prompt_tokens: int, window: int) -> bool:
        """Whether a conversation whose last request had this many tokens is summarized before the next answer."""
        return self.enabled and prompt_tokens * 100 >= self.at_percent * window


@dataclass(frozen=True, kw_only=True)
class MemoryRules(Section):
    """Whether the agent learns from conversations by itself, and how much it may remember."""

    learn: Annotated[
        bool,
        v.BOOL,
        "Let a model look through what people wrote when a conversation ends, and save lasting facts.",
    ] = False
    # People may save more themselves.
    max_memories: Annotated[
        int, v.number(10, 1000), "How many memories the agent may save for a person or a shared chat."
    ] = 200


@dataclass(frozen=True, kw_only=True)
class RetentionRules(Section):
    """The deletion of conversations that are no longer used; by default never."""

    max_age_days: Annotated[
        int | None,
        v.number(1, 36500, v.DAYS),
        "Delete conversations this many days after their last activity; empty: never.",
    ] = None
    max_database_mb: Annotated[  # SQLite only
        int | None,
        v.number(10, 10**8, v.MEGABYTES),
        "Delete the conversations unused for longest while the database is larger than this.",
    ] = None

    @property
    def is_on(self) -> bool:
        return self.max_age_days is not None or self.max_database_mb is not None

    def describe(self) -> str:
        """Return the policy as a sentence for people."""
        parts = []
        if self.max_age_days is not None:
            parts.append(f"Conversations are deleted {self.max_age_days} days after the last activity.")
        if self.max_database_mb is not None:
            parts.append(f"Above {self.max_database_mb:,} MB, those unused for longest are deleted.")
        if not parts:
            return "Conversations are kept until a person deletes them."
        return " ".join([*parts, "Pinned ones stay."])


@dataclass(frozen=True, kw_only=True)
class PushRules(Section):
    """Notifications to browsers while the page is closed."""

    enabled: Annotated[bool, v.BOOL, "Let people turn on notifications that arrive while the page is closed."] = True
    show_preview: Annotated[
        bool, v.BOOL, "Show the beginning of the answer in these notifications, and not only the title."
    ] = False
    contact: Annotated[
        str | None,
        v.CONTACT,
        "How push services can reach you: mailto: with your address, or an https:// address.",
    ] = None


@dataclass(frozen=True, kw_only=True)
class JobRules(Section):
    """Limits of running jobs, so that people need not wait for them, and how long runs are kept."""

    max_running: Annotated[int, v.number(1, 64), "How many scheduled jobs run at the same time."] = 2
    # Their conversations, too, unless a person has written in them.
    keep_days: Annotated[int, v.KEEP_DAYS, "How many days ended runs of jobs are kept; 0 keeps everything."] = 90


@dataclass(frozen=True, kw_only=True)
class WebFetchRules(Section):
    """Pages that the agent may read, beside those of the public internet."""

    private_hosts: Annotated[
        Many[Annotated[str, v.PRIVATE_HOST]],
        "Hosts in private networks whose pages the agent may read; all others are refused.",
    ] = ()


@dataclass(frozen=True, kw_only=True)
class WebSearchRules(Section):
    """The service with which the agent searches the web; without a provider there is no search."""

    provider: Annotated[
        v.SearchProvider | None,
        v.SEARCH_PROVIDER,
        "The service with which the agent searches the web; empty: it can't search.",
    ] = None
    url: Annotated[str | None, v.URL, "The address of your SearXNG; empty: the provider's own."] = field(
        default=None, repr=False
    )  # may contain a password
    api_key: Annotated[
        str | None,
        v.API_KEY,
        SentTo("url", "provider"),
        "Your API key of Brave or Tavily. It is stored encrypted and never shown.",
    ] = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class WebToolRules(Section):
    """Limits of the agent's web tools, and the service that searches for them."""

    fetch: WebFetchRules = WebFetchRules()
    search: WebSearchRules = WebSearchRules()


@dataclass(frozen=True, kw_only=True)
class WebRules(WebToolRules):
    """The address of the web server, how people reach it, and what the agent's web tools may reach."""

    host: Annotated[
        str,
        v.HOST,
        v.NEEDS_RESTART,
        Variable("PALAVER_HOST"),
        "The address at which the server listens.",
    ] = "127.0.0.1"
    port: Annotated[
        int | None,
        v.number(0, 65535),
        v.NEEDS_RESTART,
        Variable("PALAVER_PORT"),
        "The port; empty: 8765, or the next free one.",
    ] = None
    public_url: Annotated[
        str | None,
        v.URL,
        v.NEEDS_RESTART,
        Variable("PALAVER_PUBLIC_URL"),
        "The address that people use, if a reverse proxy is in front of the server.",
    ] = None
    trusted_proxies: Annotated[
        Many[Annotated[str, v.NETWORK]],
        v.NEEDS_RESTART,
        "Proxies whose headers about the client are believed.",
    ] = ()
    max_import_mb: Annotated[
        int,
        v.number(1, 100_000, v.MEGABYTES),
        "How large a file may be that a person imports on the page, in megabytes.",
    ] = 2000
    shared_link_days: Annotated[
        int | None,
        v.number(1, 36500, v.DAYS),
        "How many days a new shared link works, unless its creator says otherwise; empty: always.",
    ] = None


@dataclass(frozen=True, kw_only=True)
class BackupRules(Section):
    """Automatic backups of a SQLite database."""

    every_hours: Annotated[
        int, v.BACKUP_HOURS, "How often a server backs up the database; 0 turns automatic backups off."
    ] = 24
    keep: Annotated[int, v.number(1, 1000), "How many backups are kept."] = 3


@dataclass(frozen=True, kw_only=True)
class TurnsSection(Section):
    """Limits of running turns, and the fate of messages that arrive during a turn."""

    max_running: Annotated[int, v.number(1, 256), "How many answers are written at the same time."] = 8
    max_running_per_person: Annotated[int, v.number(1, 256), "How many of them may be for one person."] = 3
    max_queued: Annotated[int, v.number(1, 1000), "How many messages may wait in one conversation."] = 20
    busy_policy: Annotated[
        BusyPolicy, v.BUSY_POLICY, "What happens to a message that arrives while the agent responds."
    ] = BusyPolicy.QUEUE
    merge_window_seconds: Annotated[
        float, v.MERGE_WINDOW_SECONDS, "Messages that follow each other within this time get one answer."
    ] = 0
    timeout_minutes: Annotated[float, v.number(1, 1440, v.MINUTES), "How long one answer may take."] = 30
    model_titles: Annotated[
        bool, v.BOOL, "Let the model make a short title after the first answer of a conversation."
    ] = True

    @property
    def timeout(self) -> timedelta:
        return timedelta(minutes=self.timeout_minutes)


@dataclass(frozen=True, kw_only=True)
class TurnRules(TurnsSection):
    """All settings that turns obey."""

    language: str = ENGLISH  # of replies to commands, unless the person's client asks for another
    jobs: JobRules = JobRules()
    compaction: CompactionRules = CompactionRules()
    memory: MemoryRules = MemoryRules()
    retention: RetentionRules = RetentionRules()
    push: PushRules = PushRules()
    web: WebToolRules = WebToolRules()
    budgets: BudgetRules = field(default_factory=BudgetRules)
    toolsets: Mapping[str, ToolsetRule] = field(
        default_factory=lambda: {name: ToolsetRule() for name in v.TOOLSET_NAMES}
    )
    # The models that each role may choose: names, or beginnings that end with `*`. A role that is not here: all models.
    models_by_role: Mapping[Role, tuple[str, ...]] = field(default_factory=dict)
    messages_per_minute: Mapping[Role, int] = field(default_factory=dict)  # a role that is not here: no limit
    guest_commands: frozenset[str] = DEFAULT_GUEST_COMMANDS
    busy_policy_by_platform: Mapping[Platform, BusyPolicy] = field(default_factory=dict)
    open_platforms: frozenset[Platform] = frozenset()  # where people without an account may write
    # By platform, the accounts (ids, never names) that may write there as guests.
    allowed_users: Mapping[Platform, frozenset[str]] = field(default_factory=dict)
    unstreamed_platforms: frozenset[Platform] = frozenset()  # where people see an answer only when it is complete
    always_active_platforms: frozenset[Platform] = frozenset()  # where every message in a group is answered
    strict_mention_platforms: frozenset[Platform] = frozenset()  # where also follow-ups in threads need a mention
    ignoring_platforms: frozenset[Platform] = frozenset()  # where strangers get no reply
    bot_platforms: frozenset[Platform] = frozenset()  # where messages of programs are answered, too
    chats: Mapping[str, ChatChoices] = field(default_factory=dict)  # by target, as `format_chat_target` writes it

    def allows_model(self, role: Role, model: str) -> bool:
        """Whether people with this role may choose a model that is not the default."""
        patterns = self.models_by_role.get(role)
        return patterns is None or any(
            model.startswith(pattern[:-1]) if pattern.endswith("*") else model == pattern for pattern in patterns
        )

    def find_chat_choices(self, source: SessionSource) -> ChatChoices:
        """Return what an owner has set for the chat of a source. What is set for its thread wins."""
        if not self.chats or not source.has_chat:
            return NO_CHAT_CHOICES
        chat = self.chats.get(format_source_target(source, with_thread=False), NO_CHAT_CHOICES)
        thread = chat if source.thread_id is None else self.chats.get(format_source_target(source), chat)
        return ChatChoices(
            profile=thread.profile or chat.profile,
            model=thread.model or chat.model,
            toolsets=chat.toolsets if thread.toolsets is None else thread.toolsets,
        )

    def list_named_models(self, role: Role) -> list[str]:
        """List the models that are allowed for a role by their full name."""
        return [pattern for pattern in self.models_by_role.get(role, ()) if not pattern.endswith("*")]

    def get_busy_policy(self, source: SessionSource) -> BusyPolicy:
        """Return the policy for a message from `source` that arrives while the agent is answering."""
        return self.busy_policy_by_platform.get(source.platform, self.busy_policy)


# -- the rules of a platform --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetRule:
    """The reset policy of chats of certain types."""

    chat_types: tuple[ChatType, ...]
    policy: ResetPolicy
    setting_key: str

    @property
    def is_default(self) -> bool:
        """Whether the operator has not configured a policy for these chats."""
        return self.setting_key == "session_reset" and self.policy == ResetPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformRules:
    platform: Platform | None  # None: every platform without rules of its own
    reset_rules: tuple[ResetRule, ...]  # empty on platforms with several conversations at once: no automatic reset
    busy_policy: BusyPolicy
    busy_setting_key: str

    @property
    def is_busy_default(self) -> bool:
        """Whether the operator has not configured a busy policy."""
        return self.busy_setting_key == "turns.busy_policy" and self.busy_policy is BusyPolicy.QUEUE


def get_platform_rules(config: GatewayConfig, rules: TurnRules, platform: Platform | None) -> PlatformRules:
    """Return the rules that apply on a platform; with None, those of every platform without rules of its own."""
    chat_types_by_key: dict[str, list[ChatType]] = {}
    policies: dict[str, ResetPolicy] = {}
    for chat_type in _list_chat_types(platform):
        key, policy = config.find_reset_rule(platform, chat_type)
        chat_types_by_key.setdefault(key, []).append(chat_type)
        policies[key] = policy
    has_own_policy = platform in rules.busy_policy_by_platform
    return PlatformRules(
        platform=platform,
        reset_rules=tuple(
            ResetRule(chat_types=tuple(chat_types), policy=policies[key], setting_key=key)
            for key, chat_types in chat_types_by_key.items()
        ),
        busy_policy=rules.busy_policy_by_platform[platform] if has_own_policy and platform else rules.busy_policy,
        busy_setting_key=f"platforms.{platform}.busy_policy" if has_own_policy else "turns.busy_policy",
    )


def _list_chat_types(platform: Platform | None) -> tuple[ChatType, ...]:
    """Return the types of chats on a platform whose conversations can be reset automatically."""
    if platform in MULTI_SESSION_PLATFORMS:
        return ()
    return (ChatType.DM,) if platform == Platform.LOCAL else tuple(ChatType)
