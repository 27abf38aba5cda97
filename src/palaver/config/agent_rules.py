"""The configuration of the agent, its turns and the web server, as values.

`palaver.config` reads files and the environment. Keys and headers may be secret: every repr leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from palaver.config.budget_rules import BudgetRules
from palaver.core.source import ChatType, Platform
from palaver.people.model import DEFAULT_GUEST_COMMANDS, Role
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS
from palaver.sessions.policy import ResetPolicy
from palaver.sessions.speech import SpeechRules
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.config.budget_rules import TokenPrice
    from palaver.core.source import SessionSource
    from palaver.sessions.gateway_config import GatewayConfig


class SearchProvider(StrEnum):
    """A service that searches the web."""

    SEARXNG = "searxng"
    BRAVE = "brave"
    TAVILY = "tavily"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """A page as text."""

    url: str  # after redirects
    title: str
    text: str
    is_cut: bool = False  # the page has more text than was read


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A page that a search has found."""

    title: str
    url: str
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebToolRules:
    """What the agent's web tools may reach, and who searches for them."""

    private_hosts: frozenset[str] = frozenset()  # hosts in private networks that may be read
    search_provider: SearchProvider | None = None  # None: there is no search
    search_url: str | None = field(default=None, repr=False)  # may contain a password
    search_api_key: str | None = field(default=None, repr=False)


# --------------------------------------------------------------------------------------------------

_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})

DEFAULT_MESSAGES_PER_MINUTE: Final[Mapping[Role, int]] = MappingProxyType({Role.MEMBER: 60, Role.GUEST: 20})


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How to reach a model provider."""

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)  # may contain a password


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """An MCP server with tools: a command to start, or a URL to connect to."""

    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: _EMPTY, repr=False)
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: _EMPTY, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile that a conversation can use: what the agent is told, which model answers, and which tools it has."""

    title: str = ""  # for people; empty: its name
    picture: str | None = None  # a data URL
    description: str = ""  # for people
    instructions: str = ""  # empty: those of the agent
    model: str | None = None  # None: that of the agent
    toolsets: frozenset[str] | None = None  # of those that are allowed, it has only these; None: all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """The configuration of the agent: its models, instructions and tool servers, and what conversations choose from."""

    model: str = "auto"
    fallback_models: tuple[str, ...] = ()
    instructions: str = ""
    providers: Mapping[str, Provider] = field(default_factory=dict)
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict)
    context_windows: Mapping[str, int] = field(default_factory=dict)  # tokens by model; overrides what Palaver knows
    prices: Mapping[str, TokenPrice] = field(default_factory=dict)  # by model; overrides what Palaver knows
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    personalities: Mapping[str, str] = field(default_factory=dict)  # instructions about the style of the answers
    speech: SpeechRules = field(default_factory=SpeechRules)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetRule:
    """On which platforms, and for which roles, a toolset is available."""

    platforms: frozenset[Platform] | None = None  # None: on every platform
    roles: frozenset[Role] = frozenset({Role.OWNER, Role.MEMBER})

    def allows(self, platform: Platform, role: Role) -> bool:
        return role in self.roles and (self.platforms is None or platform in self.platforms)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRules:
    """When a summary replaces the older messages of a conversation for the agent, and how much is kept."""

    enabled: bool = True  # False: no automatic summaries; /compress still works
    at_percent: int = 85  # of the model's context window: when the last request filled more, a summary is made first
    keep_exchanges: int = 2  # the last exchanges stay as they are
    notify: bool = True  # people in chats get a message when it happens

    def is_due(self, prompt_tokens: int, window: int) -> bool:
        """Whether a conversation whose last request had this many tokens is summarized before the next answer."""
        return self.enabled and prompt_tokens * 100 >= self.at_percent * window


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    """Whether the agent learns from conversations by itself, and how much it may remember."""

    learn: bool = False  # a model looks through what people wrote when a conversation ends or is compacted
    max_memories: int = 200  # that the agent may save for one audience; people may save more themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRules:
    """When conversations that are no longer used are deleted; by default never."""

    max_age: timedelta | None = None  # without activity
    max_database_mb: int | None = None  # above it, the conversations that were unused for longest go (SQLite)

    @property
    def is_on(self) -> bool:
        return self.max_age is not None or self.max_database_mb is not None

    def describe(self) -> str:
        """Return the policy as a sentence for people."""
        parts = []
        if self.max_age is not None:
            parts.append(f"Conversations are deleted {self.max_age.days} days after the last activity.")
        if self.max_database_mb is not None:
            parts.append(f"Above {self.max_database_mb:,} MB, those unused for longest are deleted.")
        if not parts:
            return "Conversations are kept until a person deletes them."
        return " ".join([*parts, "Pinned ones stay."])


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRules:
    """Notifications to browsers while the page is closed."""

    enabled: bool = True
    show_preview: bool = False  # the beginning of the answer, too, and not only the title of the conversation
    contact: str | None = None  # an e-mail address or URL that push services may write to


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """How many turns run at once, and what happens to messages that arrive during a turn."""

    max_running: int = 8
    max_running_per_person: int = 3
    max_queued: int = 20  # turns that wait in one conversation
    max_running_jobs: int = 2  # runs of jobs at the same time, among the running turns
    job_keep_days: int = 90  # runs of jobs, and their conversations in which no person has written; 0: for ever
    busy_policy: BusyPolicy = BusyPolicy.QUEUE
    busy_policy_by_platform: Mapping[Platform, BusyPolicy] = field(default_factory=dict)
    merge_window: timedelta = timedelta(0)  # messages that follow each other within this time get one answer
    timeout: timedelta = timedelta(minutes=30)  # of one turn
    compaction: CompactionRules = CompactionRules()
    memory: MemoryRules = MemoryRules()
    model_titles: bool = True  # the model makes a title after the first answer
    open_platforms: frozenset[Platform] = frozenset()  # where people without an account may write
    # By platform, the accounts (ids, never names) that may write there as guests.
    allowed_users: Mapping[Platform, frozenset[str]] = field(default_factory=dict)
    messages_per_minute: Mapping[Role, int] = field(default_factory=dict)  # a role that is not here: no limit
    guest_commands: frozenset[str] = DEFAULT_GUEST_COMMANDS
    unstreamed_platforms: frozenset[Platform] = frozenset()  # where people see an answer only when it is complete
    always_active_platforms: frozenset[Platform] = frozenset()  # where every message in a group is answered
    bot_platforms: frozenset[Platform] = frozenset()  # where messages of programs are answered, too
    toolsets: Mapping[str, ToolsetRule] = field(
        default_factory=lambda: {name: ToolsetRule() for name in ("history", "memory", "schedule", "messaging", "web")}
    )
    # The models that each role may choose: names, or beginnings that end with `*`. A role that is not here: all models.
    models_by_role: Mapping[Role, tuple[str, ...]] = field(default_factory=dict)
    budgets: BudgetRules = field(default_factory=BudgetRules)
    web: WebToolRules = field(default_factory=WebToolRules)
    retention: RetentionRules = RetentionRules()
    push: PushRules = PushRules()

    def allows_model(self, role: Role, model: str) -> bool:
        """Whether people with this role may choose a model that is not the default."""
        patterns = self.models_by_role.get(role)
        return patterns is None or any(
            model.startswith(pattern[:-1]) if pattern.endswith("*") else model == pattern for pattern in patterns
        )

    def list_named_models(self, role: Role) -> list[str]:
        """List the models that are allowed for a role by their full name."""
        return [pattern for pattern in self.models_by_role.get(role, ()) if not pattern.endswith("*")]

    def get_busy_policy(self, source: SessionSource) -> BusyPolicy:
        """Return the policy for a message from `source` that arrives while the agent is answering."""
        return self.busy_policy_by_platform.get(source.platform, self.busy_policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRules:
    """Where the web server listens, and which proxies it trusts."""

    host: str = "127.0.0.1"
    port: int | None = None  # None: the default port, or the next free one
    public_url: str | None = None  # the URL that people use, if it differs: https://chat.example.org/palaver
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks whose X-Forwarded-* headers are trusted
    max_import_mb: int = 2000  # of a file that a person imports on the page
    shared_link_days: int | None = None  # how long a new shared link works by default; None: until it is revoked


# --------------------------------------------------------------------------------------------------
# When a server makes backups by itself, and how many of them are kept.


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupRules:
    every_hours: int = 24  # 0: never
    keep: int = 3


# --------------------------------------------------------------------------------------------------
# The rules that apply to conversations on each platform, and which key of config.yaml sets them.
#
# Pure: computed from the configuration with the same lookups that apply it.


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetRule:
    """When conversations in chats of certain types are reset."""

    chat_types: tuple[ChatType, ...]
    policy: ResetPolicy
    setting_key: str

    @property
    def is_default(self) -> bool:
        """Whether the operator has not configured a policy for these chats."""
        return self.setting_key == "session_reset" and self.policy == ResetPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformRules:
    """The rules that apply on a platform."""

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
