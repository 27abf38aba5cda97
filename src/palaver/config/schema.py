"""The schema of config.yaml: its sections, their keys and the defaults.

The sections that rooms use as values are in `agent_rules`; here are the others, and the file as a whole. `validators`
says how a setting is declared.
"""

# Without `from __future__ import annotations`: the annotations are data, and reading them must cost nothing.

import re
from dataclasses import field
from typing import Annotated, Final

from palaver.config import validators as v
from palaver.config.agent_rules import (
    DEFAULT_TOOLSET_ROLES,
    AgentProfile,
    BackupRules,
    ChatChoices,
    CompactionRules,
    JobRules,
    MemoryRules,
    PushRules,
    ResetSection,
    RetentionRules,
    TurnsSection,
    WebRules,
)
from palaver.config.validators import Many, Named, NotStorable, Section, Variable
from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, find_user_id_problem
from palaver.core.texts import ENGLISH
from palaver.people.model import Role
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS, GatewayConfig
from palaver.sessions.keys import DmScope
from palaver.sessions.turn import BusyPolicy

KeyPath = tuple[str | int, ...]  # the keys and list indexes that lead to a value

_SECRET_SECTIONS: Final = frozenset({"providers", "mcp_servers"})  # almost every text in them may be a secret


@dataclass(frozen=True, kw_only=True)
class SessionsSection(Section):
    """The people and chats that share a conversation."""

    group_per_user: Annotated[bool, v.BOOL, "Each person in a group or channel has their own conversation."] = (
        GatewayConfig.group_sessions_per_user
    )
    thread_per_user: Annotated[bool, v.BOOL, "Each person in a thread has their own conversation."] = (
        GatewayConfig.thread_sessions_per_user
    )
    dm_scope: Annotated[
        DmScope,
        v.DM_SCOPE,
        Variable("PALAVER_DM_SCOPE"),
        "Which direct messages share a conversation: those of a chat, a platform, a person, or all.",
    ] = GatewayConfig.dm_scope


@dataclass(frozen=True, kw_only=True)
class PrivacySection(Section):
    """Facts that are hidden from the agent."""

    redact_pii: Annotated[
        bool,
        v.BOOL,
        Variable("PALAVER_REDACT_PII"),
        "The agent sees pseudonyms instead of user and chat ids, where no mention needs the id.",
    ] = GatewayConfig.redact_pii


@dataclass(frozen=True, kw_only=True)
class HomeSection(Section):
    """The default chat on a platform."""

    chat_id: Annotated[
        str,
        v.TEXT,
        Variable("{}_HOME_CHANNEL", "platforms.{}.home_channel.chat_id"),
        "The chat for messages to this platform that name no other chat.",
    ]
    name: Annotated[
        str | None,
        v.ANY_TEXT,
        Variable("{}_HOME_CHANNEL_NAME", "platforms.{}.home_channel.name"),
        "The name of that chat.",
    ] = None
    thread_id: Annotated[
        str | None,
        v.ANY_TEXT,
        Variable("{}_HOME_CHANNEL_THREAD_ID", "platforms.{}.home_channel.thread_id"),
        "A thread in that chat.",
    ] = None


@dataclass(frozen=True, kw_only=True)
class AccountSection(Section):
    """One of several accounts on a platform."""

    enabled: Annotated[bool, v.BOOL, "Connect this account."] = True
    settings: Named[str, Annotated[object, "How to reach one of several accounts."]] = field(
        default_factory=dict, repr=False
    )


@dataclass(frozen=True, kw_only=True)
class PlatformSection(Section):
    """One platform; a platform that is in the file is enabled unless it says otherwise."""

    enabled: Annotated[bool, v.BOOL, "Connect this platform."] = True
    home_channel: HomeSection | None = None
    busy_policy: Annotated[
        BusyPolicy | None,
        v.BUSY_POLICY,
        "What happens to messages while the agent responds; empty: as elsewhere.",
    ] = None
    access: Annotated[str, v.ACCESS, "Who may talk to the agent there: people you have let in, or everyone."] = "known"
    strangers: Annotated[
        str, v.STRANGERS, "What people get who were not let in: a code to ask for access with, or no reply at all."
    ] = "pair"
    allowed_users: Annotated[
        Many[Annotated[str, v.TEXT]],
        "Ids of accounts that may talk to the agent as guests without asking for access.",
    ] = ()
    streaming: Annotated[bool, v.BOOL, "Show answers there while they are being written."] = True
    group_activation: Annotated[
        str,
        v.GROUP_ACTIVATION,
        "When the agent answers in groups: when it is mentioned or a thread goes on, at each mention, or always.",
    ] = "mention"
    allow_bots: Annotated[bool, v.BOOL, "Answer messages from other bots."] = False
    # The adapter's own, for the account without a name; its manifest defines them.
    settings: Named[str, Annotated[object, "How to reach the account; the platform says which settings it has."]] = (
        field(default_factory=dict, repr=False)
    )
    accounts: Named[Annotated[str, v.ACCOUNT_NAME], AccountSection] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PriceSection(Section):
    """The price of a model, in US dollars for a million tokens."""

    input: Annotated[str, v.TOKEN_PRICE, "What a million tokens of input cost, in US dollars."]
    output: Annotated[str, v.TOKEN_PRICE, "What a million tokens of output cost, in US dollars."]


@dataclass(frozen=True, kw_only=True)
class BudgetSection(Section):
    """The most that may be used in a day and in a month; what is left out has no limit."""

    day_usd: Annotated[
        str | None,
        v.BUDGET_USD,
        Variable("PALAVER_BUDGET_DAY_USD", "budgets.overall.day_usd"),
        "cost in a day, in US dollars",
    ] = None
    month_usd: Annotated[
        str | None,
        v.BUDGET_USD,
        Variable("PALAVER_BUDGET_MONTH_USD", "budgets.overall.month_usd"),
        "cost in a month, in US dollars",
    ] = None
    day_tokens: Annotated[int | None, v.BUDGET_TOKENS, "use in a day, in tokens"] = None
    month_tokens: Annotated[int | None, v.BUDGET_TOKENS, "use in a month, in tokens"] = None


@dataclass(frozen=True, kw_only=True)
class BudgetsSection(Section):
    """Limits on tokens and money: for everybody together, for each person, for each job, for single profiles."""

    overall: Annotated[BudgetSection, "The most that everyone together may {}."] = BudgetSection()
    per_person: Annotated[BudgetSection, "The most that each person may {}."] = BudgetSection()
    per_job: Annotated[BudgetSection, "The most that each scheduled job may {}."] = BudgetSection()
    profiles: Named[
        Annotated[str, v.CHOICE_NAME],
        Annotated[BudgetSection, "The most that all conversations with this profile together may {}."],
    ] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PeopleSection(Section):
    """Limits of what people may send and store, and the commands that guests may use."""

    messages_per_minute: Named[
        Annotated[Role, v.ROLE],
        Annotated[
            int | None,
            v.MESSAGE_COUNT,
            "How many messages a person with this role may send a minute; null: no limit.",
        ],
    ] = field(default_factory=dict)
    guest_commands: Annotated[
        tuple[Annotated[str, v.COMMAND_NAME], ...] | None,
        "The slash commands that guests may use, without their slashes.",
    ] = None
    max_file_mb: Annotated[
        int, v.number(1, 100_000, v.MEGABYTES), "How much space all files of a person may take, in megabytes."
    ] = GatewayConfig.max_file_mb_per_person


@dataclass(frozen=True, kw_only=True)
class ToolsetSection(Section):
    """On which platforms, and for which roles, a toolset is available; without platforms, on all."""

    enabled: Annotated[bool, v.BOOL, "Let the agent use this toolset."] = True
    platforms: Annotated[
        tuple[Annotated[Platform, v.PLATFORM], ...] | None,
        v.AT_LEAST_ONE,
        "The platforms on which the agent has it; empty: all.",
    ] = None
    roles: Annotated[
        tuple[Annotated[Role, v.ROLE], ...], v.AT_LEAST_ONE, "The roles for which the agent may use it."
    ] = DEFAULT_TOOLSET_ROLES


def _find_wrong_user_id(sections: dict[Platform, PlatformSection]) -> str | None:
    """Return an error if an allow-list of a platform contains a name instead of an id."""
    for platform, section in sections.items():
        for user_id in section.allowed_users:
            problem = find_user_id_problem(platform, user_id)
            if problem is not None:
                return f"{platform}.allowed_users: {problem}"
    return None


def _find_unused_rules(sections: dict[Platform, ResetSection]) -> str | None:
    """Return an error if a reset policy is set for a platform where none would ever apply."""
    platforms = " and ".join(sorted(MULTI_SESSION_PLATFORMS & sections.keys()))
    return f"conversations on {platforms} never restart automatically; remove {platforms}" if platforms else None


@dataclass(frozen=True, kw_only=True)
class ConfigFile(AgentProfile):
    """All of config.yaml; created without arguments, it holds the defaults."""

    database_url: Annotated[
        str,
        v.DATABASE_URL,
        v.NEEDS_RESTART,
        Variable("PALAVER_DATABASE_URL"),
        NotStorable("Palaver needs it to open the database. Set it in config.yaml or with PALAVER_DATABASE_URL."),
        "Where conversations are stored.",
    ] = "palaver.db"
    timezone: Annotated[
        str | None,
        v.TIMEZONE,
        Variable("PALAVER_TIMEZONE"),
        "The time zone of reset policies, budgets and jobs that don't set their own; empty: the machine's.",
    ] = None
    language: Annotated[
        str,
        v.TEXT_LANGUAGE,
        Variable("PALAVER_LANGUAGE"),
        "The language of replies to commands in chats and in the terminal. The page is in the language of the browser.",
    ] = ENGLISH
    session_reset: ResetSection = field(default_factory=ResetSection)
    reset_by_platform: Annotated[
        Named[Annotated[Platform, v.PLATFORM], ResetSection], v.CheckTogether(_find_unused_rules)
    ] = field(default_factory=dict)
    reset_by_type: Named[Annotated[ChatType, v.CHAT_TYPE], ResetSection] = field(default_factory=dict)
    sessions: SessionsSection = SessionsSection()
    privacy: PrivacySection = PrivacySection()
    agent: Annotated[
        str,
        v.AGENT_NAME,
        "The name of the agent in session keys. Changing it starts new conversations everywhere.",
    ] = GatewayConfig.agent
    chats: Named[Annotated[str, v.CHAT_TARGET], ChatChoices] = field(default_factory=dict)
    models_by_role: Named[
        Annotated[Role, v.ROLE],
        Annotated[
            Many[Annotated[str, v.MODEL_PATTERN]],
            "The models that people with this role may choose; a * at the end stands for any ending.",
        ],
    ] = field(default_factory=dict)
    prices: Named[Annotated[str, v.PROVIDER_MODEL], PriceSection] = field(  # type: ignore[assignment]
        default_factory=dict
    )
    turns: TurnsSection = field(default_factory=TurnsSection)
    jobs: JobRules = field(default_factory=JobRules)
    backup: BackupRules = field(default_factory=BackupRules)
    retention: RetentionRules = field(default_factory=RetentionRules)
    compaction: CompactionRules = field(default_factory=CompactionRules)
    budgets: BudgetsSection = BudgetsSection()
    memory: MemoryRules = field(default_factory=MemoryRules)
    toolsets: Named[Annotated[str, v.TOOLSET_NAME], ToolsetSection] = field(default_factory=dict)
    push: PushRules = field(default_factory=PushRules)
    web: WebRules = field(default_factory=WebRules)
    people: PeopleSection = PeopleSection()
    platforms: Annotated[
        Named[Annotated[Platform, v.PLATFORM], PlatformSection], v.CheckTogether(_find_wrong_user_id)
    ] = field(default_factory=dict)


def may_hold_secret(path: KeyPath) -> bool:
    """Whether a value in this section may be a secret, whatever its key is called."""
    is_adapter_setting = path[:1] == ("platforms",) and "settings" in (path[2:3] + path[4:5])
    return bool(path) and (path[0] in _SECRET_SECTIONS or is_adapter_setting)


def format_key(path: KeyPath) -> str:
    """Return a key for a message. In sections with secrets, a part that is not a plain name is hidden.

    Such a part may be a secret that the operator put in the wrong place.
    """
    hidden = {part for part in path if may_hold_secret(path) and not re.fullmatch(r"[\w-]{1,32}", str(part))}
    return ".".join("…" if part in hidden else str(part) for part in path)
