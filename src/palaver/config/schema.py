"""The schema of config.yaml: its sections, their keys and the defaults.

Owns which keys exist, where the operator chooses the names, which values are always read as text, and which sections
may hold secrets. `validators` says which values are valid.

Always true: a section is a plain frozen dataclass, so that the defaults cost no import; pydantic fills it when there
is a file, and rejects unknown keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, get_args, get_origin, get_type_hints

from palaver.config import validators
from palaver.core.source import Platform, find_user_id_problem
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Iterator

KeyPath = tuple[str | int, ...]  # the keys and list indexes that lead to a value

# In these sections the operator chooses the names of the keys.
OPERATOR_NAMED_SECTIONS: Final = frozenset(
    {
        *("platforms", "reset_by_platform", "reset_by_type", "providers", "mcp_servers", "toolsets"),
        *("profiles", "personalities", "prices"),
    }
)
_LITERAL_TEXT_KEYS: Final = frozenset(
    {
        *("chat_id", "thread_id", "name", "database_url", "timezone", "agent"),
        *("model", "models_by_role", "fallback_models", "instructions", "api_key", "command", "args", "env", "headers"),
        *("transcription", "speaking", "voice", "language", "transcription_command", "speaking_command", "contact"),
        *("description", "title", "picture", "personalities", "day_usd", "month_usd", "prices"),
    }
)
_SECRET_SECTIONS: Final = frozenset({"providers", "mcp_servers"})  # almost every text in them may be a secret


class Section:
    """A section of config.yaml; pydantic rejects keys that it does not define."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
class ResetSection(Section):
    """When conversations restart automatically; without a time zone, that of the file applies."""

    mode: Annotated[str, validators.RESET_MODE] = "none"
    idle_minutes: Annotated[int, validators.IDLE_MINUTES] = 1440
    at_hour: Annotated[int, validators.HOUR_OF_DAY] = 4
    timezone: Annotated[str | None, validators.OPTIONAL_TIMEZONE] = None
    notify: Annotated[bool, validators.BOOL] = True


@dataclass(frozen=True, kw_only=True)
class ProfileResetSection(ResetSection):
    """When conversations with a profile restart automatically; without a mode, as those without a profile."""

    mode: Annotated[str | None, validators.OPTIONAL_RESET_MODE] = None  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class SessionsSection(Section):
    """Which people and chats share a conversation."""

    group_per_user: Annotated[bool, validators.BOOL] = True
    thread_per_user: Annotated[bool, validators.BOOL] = False
    dm_scope: Annotated[str, validators.DM_SCOPE] = "chat"


@dataclass(frozen=True, kw_only=True)
class PrivacySection(Section):
    """What is hidden from the agent."""

    redact_pii: Annotated[bool, validators.BOOL] = False


@dataclass(frozen=True, kw_only=True)
class HomeSection(Section):
    """The default chat on a platform."""

    chat_id: Annotated[str, validators.TEXT]
    name: Annotated[str | None, validators.OPTIONAL_TEXT] = None
    thread_id: Annotated[str | None, validators.OPTIONAL_TEXT] = None


_MessagesPerMinute = dict[Annotated[str, validators.ROLE], Annotated[int | None, validators.OPTIONAL_MESSAGE_COUNT]]


@dataclass(frozen=True, kw_only=True)
class AccountSection(Section):
    """One of several accounts on a platform."""

    enabled: Annotated[bool, validators.BOOL] = True
    settings: Annotated[dict[str, object], validators.NULL_IS_EMPTY] = field(default_factory=dict, repr=False)


_Accounts = dict[Annotated[str, validators.ACCOUNT_NAME], Annotated[AccountSection, validators.NULL_IS_EMPTY]]


@dataclass(frozen=True, kw_only=True)
class PlatformSection(Section):
    """One platform; a platform that is in the file is enabled unless it says otherwise."""

    enabled: Annotated[bool, validators.BOOL] = True
    home_channel: HomeSection | None = None
    busy_policy: Annotated[str | None, validators.OPTIONAL_BUSY_POLICY] = None
    access: Annotated[str, validators.ACCESS] = "known"
    allowed_users: Annotated[tuple[Annotated[str, validators.TEXT], ...], validators.NULL_IS_EMPTY_LIST] = ()
    streaming: Annotated[bool, validators.BOOL] = True
    group_activation: Annotated[str, validators.GROUP_ACTIVATION] = "mention"
    allow_bots: Annotated[bool, validators.BOOL] = False
    # The adapter's own, for the account without a name; its manifest defines them.
    settings: Annotated[dict[str, object], validators.NULL_IS_EMPTY] = field(default_factory=dict, repr=False)
    accounts: Annotated[_Accounts, validators.NULL_IS_EMPTY] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ProviderSection(Section):
    """How to reach a model provider."""

    api_key: Annotated[str | None, validators.OPTIONAL_API_KEY] = field(default=None, repr=False)
    base_url: Annotated[str | None, validators.OPTIONAL_URL] = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class McpSection(Section):
    """An MCP server with tools: a command to start, or a URL to connect to."""

    command: Annotated[str | None, validators.OPTIONAL_COMMAND] = None
    args: Annotated[tuple[Annotated[str, validators.ARGUMENT_TEXT], ...], validators.NULL_IS_EMPTY_LIST] = field(
        default=(), repr=False
    )
    env: Annotated[
        dict[Annotated[str, validators.VARIABLE_NAME], Annotated[str, validators.ARGUMENT_TEXT]],
        validators.NULL_IS_EMPTY,
    ] = field(default_factory=dict, repr=False)
    url: Annotated[str | None, validators.OPTIONAL_URL] = field(default=None, repr=False)
    headers: Annotated[
        dict[Annotated[str, validators.HEADER_NAME], Annotated[str, validators.HEADER_VALUE]], validators.NULL_IS_EMPTY
    ] = field(default_factory=dict, repr=False)
    enabled: Annotated[bool, validators.BOOL] = True

    def find_conflict(self) -> str | None:
        """Return why the keys of this section cannot be used together; None when they can."""
        if (self.command is None) == (self.url is None):
            return "set either command or url"
        if self.url is not None and (self.args or self.env):
            return "args and env can only be used with command, not with url"
        if self.command is not None and self.headers:
            return "headers can only be used with url, not with command"
        return None


@dataclass(frozen=True, kw_only=True)
class ProfileSection(Section):
    """A profile that a conversation can use; what it leaves out is as without a profile."""

    description: Annotated[str | None, validators.OPTIONAL_TEXT] = None
    title: Annotated[str | None, validators.OPTIONAL_TEXT] = None  # None: the name of the profile
    picture: Annotated[str | None, validators.OPTIONAL_PICTURE] = field(default=None, repr=False)
    instructions: Annotated[str | None, validators.OPTIONAL_TEXT] = None
    model: Annotated[str | None, validators.OPTIONAL_FALLBACK_MODEL] = None
    toolsets: tuple[Annotated[str, validators.PROFILE_TOOLSET], ...] | None = None
    session_reset: Annotated[ProfileResetSection, validators.NULL_IS_EMPTY] = field(default_factory=ProfileResetSection)


@dataclass(frozen=True, kw_only=True)
class TurnsSection(Section):
    """How many turns run at once, and what happens to messages that arrive during a turn."""

    max_running: Annotated[int, validators.RUNNING_TURNS] = 8
    max_running_per_person: Annotated[int, validators.RUNNING_TURNS] = 3
    max_queued: Annotated[int, validators.QUEUED_TURNS] = 20
    busy_policy: Annotated[str, validators.BUSY_POLICY] = "queue"
    merge_window_seconds: Annotated[float, validators.MERGE_WINDOW_SECONDS] = 0
    timeout_minutes: Annotated[int, validators.TIMEOUT_MINUTES] = 30
    model_titles: Annotated[bool, validators.BOOL] = True


@dataclass(frozen=True, kw_only=True)
class JobsSection(Section):
    """How many jobs run at once, so that people need not wait for them, and how long their runs are kept."""

    max_running: Annotated[int, validators.RUNNING_JOBS] = 2
    keep_days: Annotated[int, validators.KEEP_DAYS] = 90


@dataclass(frozen=True, kw_only=True)
class BackupSection(Section):
    """How often a server backs up a SQLite database by itself, and how many backups are kept."""

    every_hours: Annotated[int, validators.BACKUP_HOURS] = 24
    keep: Annotated[int, validators.BACKUP_COUNT] = 3


@dataclass(frozen=True, kw_only=True)
class RetentionSection(Section):
    """When conversations that are no longer used are deleted; by default never."""

    max_age_days: Annotated[int | None, validators.OPTIONAL_AGE_DAYS] = None
    max_database_mb: Annotated[int | None, validators.OPTIONAL_DATABASE_MB] = None


@dataclass(frozen=True, kw_only=True)
class CompactionSection(Section):
    """When a summary replaces the older messages of a conversation for the agent, and how much is kept."""

    enabled: Annotated[bool, validators.BOOL] = True
    at_percent: Annotated[int, validators.PERCENT_OF_CONTEXT] = 85
    keep_exchanges: Annotated[int, validators.KEPT_EXCHANGES] = 2
    notify: Annotated[bool, validators.BOOL] = True


@dataclass(frozen=True, kw_only=True)
class PriceSection(Section):
    """What a model costs, in US dollars for a million tokens."""

    input: Annotated[str, validators.TOKEN_PRICE]
    output: Annotated[str, validators.TOKEN_PRICE]


@dataclass(frozen=True, kw_only=True)
class BudgetSection(Section):
    """The most that may be used in a day and in a month; what is left out has no limit."""

    day_usd: Annotated[str | None, validators.OPTIONAL_BUDGET_USD] = None
    month_usd: Annotated[str | None, validators.OPTIONAL_BUDGET_USD] = None
    day_tokens: Annotated[int | None, validators.OPTIONAL_BUDGET_TOKENS] = None
    month_tokens: Annotated[int | None, validators.OPTIONAL_BUDGET_TOKENS] = None


_ProfileBudgets = dict[Annotated[str, validators.CHOICE_NAME], Annotated[BudgetSection, validators.NULL_IS_EMPTY]]


@dataclass(frozen=True, kw_only=True)
class BudgetsSection(Section):
    """Limits on tokens and money: for everybody together, for each person, for each job, for single profiles."""

    overall: Annotated[BudgetSection, validators.NULL_IS_EMPTY] = field(default_factory=BudgetSection)
    per_person: Annotated[BudgetSection, validators.NULL_IS_EMPTY] = field(default_factory=BudgetSection)
    per_job: Annotated[BudgetSection, validators.NULL_IS_EMPTY] = field(default_factory=BudgetSection)
    profiles: Annotated[_ProfileBudgets, validators.NULL_IS_EMPTY] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MemorySection(Section):
    """Whether the agent learns from conversations by itself, and how much it may remember."""

    learn: Annotated[bool, validators.BOOL] = False
    max_memories: Annotated[int, validators.MEMORY_COUNT] = 200


_Arguments = Annotated[tuple[Annotated[str, validators.ARGUMENT_TEXT], ...], validators.NULL_IS_EMPTY_LIST]


@dataclass(frozen=True, kw_only=True)
class SpeechSection(Section):
    """Which engines turn speech into text and text into speech."""

    transcription: Annotated[str, validators.SPEECH_ENGINE] = "auto"
    speaking: Annotated[str, validators.SPEECH_ENGINE] = "auto"
    voice: Annotated[str | None, validators.OPTIONAL_VOICE] = None
    language: Annotated[str | None, validators.OPTIONAL_LANGUAGE] = None
    transcribe_voice_notes: Annotated[bool, validators.BOOL] = True
    max_minutes: Annotated[int, validators.RECORDING_MINUTES] = 15
    transcription_command: _Arguments = ()
    speaking_command: _Arguments = ()


@dataclass(frozen=True, kw_only=True)
class PushSection(Section):
    """Notifications to browsers while the page is closed."""

    enabled: Annotated[bool, validators.BOOL] = True
    show_preview: Annotated[bool, validators.BOOL] = False
    contact: Annotated[str | None, validators.OPTIONAL_CONTACT] = None


@dataclass(frozen=True, kw_only=True)
class PeopleSection(Section):
    """How much people may send, by role, and which commands guests may use."""

    messages_per_minute: Annotated[_MessagesPerMinute, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    guest_commands: tuple[Annotated[str, validators.COMMAND_NAME], ...] | None = None
    max_file_mb: Annotated[int, validators.IMPORT_MB] = 2000


@dataclass(frozen=True, kw_only=True)
class ToolsetSection(Section):
    """On which platforms, and for which roles, a toolset is available; without platforms, on all."""

    enabled: Annotated[bool, validators.BOOL] = True
    platforms: Annotated[tuple[Annotated[str, validators.PLATFORM], ...] | None, validators.AT_LEAST_ONE] = None
    roles: Annotated[tuple[Annotated[str, validators.ROLE], ...], validators.AT_LEAST_ONE] = ("owner", "member")


@dataclass(frozen=True, kw_only=True)
class WebFetchSection(Section):
    """Which pages the agent may read, beside those of the public internet."""

    private_hosts: Annotated[tuple[Annotated[str, validators.PRIVATE_HOST], ...], validators.NULL_IS_EMPTY_LIST] = ()


@dataclass(frozen=True, kw_only=True)
class WebSearchSection(Section):
    """The service with which the agent searches the web; without a provider there is no search."""

    provider: Annotated[str | None, validators.OPTIONAL_SEARCH_PROVIDER] = None
    url: Annotated[str | None, validators.OPTIONAL_URL] = field(default=None, repr=False)
    api_key: Annotated[str | None, validators.OPTIONAL_API_KEY] = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class WebSection(Section):
    """Where the web server listens, and how people reach it."""

    host: Annotated[str, validators.HOST] = "127.0.0.1"
    port: Annotated[int | None, validators.OPTIONAL_PORT] = None  # None: 8765, or the next free one
    public_url: Annotated[str | None, validators.OPTIONAL_URL] = None
    trusted_proxies: Annotated[tuple[Annotated[str, validators.NETWORK], ...], validators.NULL_IS_EMPTY_LIST] = ()
    max_import_mb: Annotated[int, validators.IMPORT_MB] = 2000
    fetch: Annotated[WebFetchSection, validators.NULL_IS_EMPTY] = field(default_factory=WebFetchSection)
    search: Annotated[WebSearchSection, validators.NULL_IS_EMPTY] = field(default_factory=WebSearchSection)
    shared_link_days: Annotated[int | None, validators.OPTIONAL_AGE_DAYS] = None  # None: never expires


def _find_wrong_user_id(sections: dict[str, PlatformSection]) -> str | None:
    """Return an error if an allow-list of a platform contains a name instead of an id."""
    for name, section in sections.items():
        for user_id in section.allowed_users:
            problem = find_user_id_problem(Platform(name), user_id)
            if problem is not None:
                return f"{name}.allowed_users: {problem}"
    return None


def _find_unused_rules(sections: dict[str, ResetSection]) -> str | None:
    """Return an error if a reset policy is set for a platform where none would ever apply."""
    platforms = " and ".join(sorted(MULTI_SESSION_PLATFORMS & sections.keys()))
    return f"conversations on {platforms} never restart automatically; remove {platforms}" if platforms else None


_Reset = Annotated[ResetSection, validators.NULL_IS_EMPTY]
_ResetByPlatform = Annotated[
    dict[Annotated[str, validators.PLATFORM], _Reset],
    validators.NULL_IS_EMPTY,
    validators.CheckTogether(_find_unused_rules),
]
_ResetByType = dict[Annotated[str, validators.CHAT_TYPE], _Reset]
_Platforms = Annotated[
    dict[Annotated[str, validators.PLATFORM], Annotated[PlatformSection, validators.NULL_IS_EMPTY]],
    validators.NULL_IS_EMPTY,
    validators.CheckTogether(_find_wrong_user_id),
]
_Prices = dict[Annotated[str, validators.PROVIDER_MODEL], PriceSection]
_Windows = dict[Annotated[str, validators.PROVIDER_MODEL], Annotated[int, validators.TOKEN_COUNT]]
_ModelsByRole = dict[
    Annotated[str, validators.ROLE],
    Annotated[tuple[Annotated[str, validators.MODEL_PATTERN], ...], validators.NULL_IS_EMPTY_LIST],
]
_Fallbacks = tuple[Annotated[str, validators.FALLBACK_MODEL], ...]
_Providers = dict[Annotated[str, validators.PROVIDER_NAME], Annotated[ProviderSection, validators.NULL_IS_EMPTY]]
_Profiles = dict[Annotated[str, validators.CHOICE_NAME], Annotated[ProfileSection, validators.NULL_IS_EMPTY]]
_Personalities = dict[Annotated[str, validators.CHOICE_NAME], Annotated[str, validators.TEXT]]
_Mcp = Annotated[McpSection, validators.NULL_IS_EMPTY, validators.CheckTogether(McpSection.find_conflict)]
_McpServers = dict[Annotated[str, validators.SERVER_NAME], _Mcp]
_Toolsets = dict[Annotated[str, validators.TOOLSET_NAME], Annotated[ToolsetSection, validators.NULL_IS_EMPTY]]


@dataclass(frozen=True, kw_only=True)
class ConfigFile(Section):
    """All of config.yaml; created without arguments, it holds the defaults."""

    database_url: Annotated[str, validators.DATABASE_URL] = "palaver.db"
    timezone: Annotated[str | None, validators.OPTIONAL_TIMEZONE] = None  # None: the machine's
    session_reset: _Reset = field(default_factory=ResetSection)
    reset_by_platform: _ResetByPlatform = field(default_factory=dict)
    reset_by_type: Annotated[_ResetByType, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    sessions: Annotated[SessionsSection, validators.NULL_IS_EMPTY] = field(default_factory=SessionsSection)
    privacy: Annotated[PrivacySection, validators.NULL_IS_EMPTY] = field(default_factory=PrivacySection)
    agent: Annotated[str, validators.AGENT_NAME] = "main"
    model: Annotated[str, validators.MODEL] = "auto"
    fallback_models: Annotated[_Fallbacks, validators.NULL_IS_EMPTY_LIST] = ()
    models_by_role: Annotated[_ModelsByRole, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    context_windows: Annotated[_Windows, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    prices: Annotated[_Prices, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    instructions: Annotated[str | None, validators.OPTIONAL_TEXT] = None
    profiles: Annotated[_Profiles, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    personalities: Annotated[_Personalities, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    providers: Annotated[_Providers, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    mcp_servers: Annotated[_McpServers, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    turns: Annotated[TurnsSection, validators.NULL_IS_EMPTY] = field(default_factory=TurnsSection)
    jobs: Annotated[JobsSection, validators.NULL_IS_EMPTY] = field(default_factory=JobsSection)
    backup: Annotated[BackupSection, validators.NULL_IS_EMPTY] = field(default_factory=BackupSection)
    retention: Annotated[RetentionSection, validators.NULL_IS_EMPTY] = field(default_factory=RetentionSection)
    compaction: Annotated[CompactionSection, validators.NULL_IS_EMPTY] = field(default_factory=CompactionSection)
    budgets: Annotated[BudgetsSection, validators.NULL_IS_EMPTY] = field(default_factory=BudgetsSection)
    memory: Annotated[MemorySection, validators.NULL_IS_EMPTY] = field(default_factory=MemorySection)
    toolsets: Annotated[_Toolsets, validators.NULL_IS_EMPTY] = field(default_factory=dict)
    speech: Annotated[SpeechSection, validators.NULL_IS_EMPTY] = field(default_factory=SpeechSection)
    push: Annotated[PushSection, validators.NULL_IS_EMPTY] = field(default_factory=PushSection)
    web: Annotated[WebSection, validators.NULL_IS_EMPTY] = field(default_factory=WebSection)
    people: Annotated[PeopleSection, validators.NULL_IS_EMPTY] = field(default_factory=PeopleSection)
    platforms: _Platforms = field(default_factory=dict)


def list_setting_keys() -> tuple[str, ...]:
    """Return every key of config.yaml, dotted; `<name>` stands for a name that the operator chooses."""
    return tuple(_iterate_keys(ConfigFile))


def is_literal_text(path: KeyPath) -> bool:
    """Whether a value is text, such as an id, so that 007 and 1712345678.1200 must not be read as numbers."""
    if _is_adapter_setting(path):
        return False
    if path[0] == "platforms" and path[2:3] == ("allowed_users",):
        return True
    parent = path[:3] if path[0] == "mcp_servers" else path[:1]  # of the entries of args, env, headers, fallback_models
    return path[-1] in _LITERAL_TEXT_KEYS or parent[-1] in _LITERAL_TEXT_KEYS


def may_hold_secret(path: KeyPath) -> bool:
    """Whether a value in this section may be a secret, whatever its key is called."""
    return bool(path) and (path[0] in _SECRET_SECTIONS or _is_adapter_setting(path))


def _is_adapter_setting(path: KeyPath) -> bool:
    """Whether the manifest of a platform defines this key, and not this schema."""
    return path[0] == "platforms" and "settings" in (path[2:3] + path[4:5])


def format_key(path: KeyPath) -> str:
    """Return a key for a message. In sections with secrets, a part that is not a plain name is hidden.

    Such a part may be a secret that the operator put in the wrong place.
    """
    hidden = {part for part in path if may_hold_secret(path) and not re.fullmatch(r"[\w-]{1,32}", str(part))}
    return ".".join("…" if part in hidden else str(part) for part in path)


def _iterate_keys(section: type, prefix: str = "") -> Iterator[str]:
    for name, hint in get_type_hints(section).items():
        placeholder = "<name>." if get_origin(hint) is dict else ""
        subsection = next((part for part in (hint, *get_args(hint)) if is_dataclass(part)), None)
        if isinstance(subsection, type):
            yield from _iterate_keys(subsection, f"{prefix}{name}.{placeholder}")
        elif get_origin(hint) is not ClassVar:
            yield f"{prefix}{name}"
