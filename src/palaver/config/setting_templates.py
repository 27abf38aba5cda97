"""Every setting that exists, described as data, so that a page, the terminal and the API can offer it.

A template is a key in which `<name>` stands for a name that the operator chooses: `providers.<name>.api_key`. The
schema says which exist; this module reads it and adds what a form needs. The help texts are in `setting_help`.

Always true: every value that config.yaml can hold has a template, so what a helper adds to the schema appears here.
"""

from __future__ import annotations

import functools
import json
import re
import types
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from palaver.config.schema import ConfigFile
from palaver.config.validators import TEXT_FORM, Rule, ValueForm
from palaver.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_RESET: Final = {
    "mode": "When conversations restart: never, after a time without messages, every day, or whichever comes first.",
    "idle_minutes": "Restart after this many minutes without a message from a person.",
    "at_hour": "Restart every day at this hour, local time.",
    "timezone": "The time zone of the hour; empty: the time zone of this gateway.",
    "notify": "Tell people when their conversation has restarted.",
}
_PROFILE_RESET: Final = _RESET | {
    "mode": (
        "When conversations with this profile restart: never, after a time without messages, every day, or whichever"
        " comes first; empty: as without the profile."
    )
}
_BUDGETS: Final = {
    "overall": "everyone together",
    "per_person": "each person",
    "per_job": "each scheduled job",
    "profiles.<name>": "all conversations with this profile together",
}
_LIMITS: Final = {
    "day_usd": "cost in a day, in US dollars",
    "month_usd": "cost in a month, in US dollars",
    "day_tokens": "use in a day, in tokens",
    "month_tokens": "use in a month, in tokens",
}


def _iterate_shared_texts() -> Iterator[tuple[str, str]]:
    for prefix in ("session_reset", "reset_by_platform.<name>", "reset_by_type.<name>"):
        yield from ((f"{prefix}.{name}", text) for name, text in _RESET.items())
    yield from ((f"profiles.<name>.session_reset.{name}", text) for name, text in _PROFILE_RESET.items())
    for scope, who in _BUDGETS.items():
        yield from ((f"budgets.{scope}.{name}", f"The most that {who} may {text}.") for name, text in _LIMITS.items())


SETTING_HELP: Final[Mapping[str, str]] = {
    **dict(_iterate_shared_texts()),
    "database_url": "Where conversations are stored.",
    "timezone": "The time zone of reset policies, budgets and jobs that don't set their own; empty: the machine's.",
    "sessions.group_per_user": "Each person in a group or channel has their own conversation.",
    "sessions.thread_per_user": "Each person in a thread has their own conversation.",
    "sessions.dm_scope": "Which direct messages share a conversation: those of a chat, a platform, a person, or all.",
    "privacy.redact_pii": "The agent sees pseudonyms instead of user and chat ids, where no mention needs the id.",
    "agent": "The name of the agent in session keys. Changing it starts new conversations everywhere.",
    "model": "The default model. auto uses the first that works.",
    "fallback_models": "Models to try in this order when the default model can't be reached.",
    "models_by_role.<name>": "The models that people with this role may choose; a * at the end stands for any ending.",
    "context_windows.<name>": "How many tokens a model can read at once, if Palaver does not know it.",
    "prices.<name>.input": "What a million tokens of input cost, in US dollars.",
    "prices.<name>.output": "What a million tokens of output cost, in US dollars.",
    "instructions": "Instructions for the agent in every conversation.",
    "profiles.<name>.title": "The name that people see; empty: the name of the profile.",
    "profiles.<name>.picture": "A small picture that people see beside the name.",
    "profiles.<name>.description": "What the profile is for.",
    "profiles.<name>.instructions": "Instructions for the agent, instead of the general ones.",
    "profiles.<name>.model": "The model of conversations that have chosen none.",
    "profiles.<name>.toolsets": "The tools that the agent has with this profile; empty: all that are allowed.",
    "personalities.<name>": "Instructions about the style of the answers.",
    "providers.<name>.api_key": "Your API key. It is stored encrypted and never shown.",
    "providers.<name>.base_url": "The address of the API; empty: the provider's own.",
    "mcp_servers.<name>.command": "The program to start.",
    "mcp_servers.<name>.args": "Its arguments.",
    "mcp_servers.<name>.env.<name>": "A variable in its environment.",
    "mcp_servers.<name>.url": "The address of the MCP server.",
    "mcp_servers.<name>.headers.<name>": "An HTTP header that is sent with every request.",
    "mcp_servers.<name>.enabled": "Use this server.",
    "turns.max_running": "How many answers are written at the same time.",
    "turns.max_running_per_person": "How many of them may be for one person.",
    "turns.max_queued": "How many messages may wait in one conversation.",
    "turns.busy_policy": "What happens to a message that arrives while the agent responds.",
    "turns.merge_window_seconds": "Messages that follow each other within this time get one answer.",
    "turns.timeout_minutes": "How long one answer may take.",
    "turns.model_titles": "Let the model make a short title after the first answer of a conversation.",
    "jobs.max_running": "How many scheduled jobs run at the same time.",
    "jobs.keep_days": "How many days ended runs of jobs are kept; 0 keeps everything.",
    "compaction.enabled": "Summarize older messages for the agent when a conversation gets too long for the model.",
    "compaction.at_percent": "How full the model's context may get before a summary is made, in percent.",
    "compaction.keep_exchanges": "How many of the last exchanges the agent still sees in full.",
    "compaction.notify": "Tell people in a chat when a summary was made.",
    "speech.transcription": "What turns recordings into text: auto, off, command, or a model such as openai:whisper-1.",
    "speech.speaking": "What reads answers aloud: auto, off, command, or a model such as openai:gpt-4o-mini-tts.",
    "speech.voice": "The voice that reads answers aloud; empty: the engine's own.",
    "speech.language": "The language that people speak, such as de; empty: it is detected.",
    "speech.transcribe_voice_notes": "Turn voice messages of chats into text before the agent answers.",
    "speech.max_minutes": "How long a recording may be, in minutes.",
    "speech.transcription_command": "The program that prints the text of the recording {file}, with its arguments.",
    "speech.speaking_command": "The program that reads text from its input and writes audio to its output.",
    "push.enabled": "Let people turn on notifications that arrive while the page is closed.",
    "push.show_preview": "Show the beginning of the answer in these notifications, and not only the title.",
    "push.contact": "How push services can reach you: mailto: with your address, or an https:// address.",
    "memory.learn": "Let a model look through what people wrote when a conversation ends, and save lasting facts.",
    "memory.max_memories": "How many memories the agent may save for a person or a shared chat.",
    "toolsets.<name>.enabled": "Let the agent use this toolset.",
    "toolsets.<name>.platforms": "The platforms on which the agent has it; empty: all.",
    "toolsets.<name>.roles": "The roles for which the agent may use it.",
    "retention.max_age_days": "Delete conversations this many days after their last activity; empty: never.",
    "retention.max_database_mb": "Delete the conversations unused for longest while the database is larger than this.",
    "backup.every_hours": "How often a server backs up the database; 0 turns automatic backups off.",
    "backup.keep": "How many backups are kept.",
    "web.host": "The address at which the server listens.",
    "web.port": "The port; empty: 8765, or the next free one.",
    "web.public_url": "The address that people use, if a reverse proxy is in front of the server.",
    "web.trusted_proxies": "Proxies whose headers about the client are believed.",
    "web.max_import_mb": "How large a file may be that a person imports on the page, in megabytes.",
    "web.shared_link_days": "How many days a new shared link works, unless its creator says otherwise; empty: always.",
    "web.fetch.private_hosts": "Hosts in private networks whose pages the agent may read; all others are refused.",
    "web.search.provider": "The service with which the agent searches the web; empty: it can't search.",
    "web.search.url": "The address of your SearXNG; empty: the provider's own.",
    "web.search.api_key": "Your API key of Brave or Tavily. It is stored encrypted and never shown.",
    "people.messages_per_minute.<name>": "How many messages a person with this role may send a minute; null: no limit.",
    "people.guest_commands": "The slash commands that guests may use, without their slashes.",
    "people.max_file_mb": "How much space all files of a person may take, in megabytes.",
    "platforms.<name>.enabled": "Connect this platform.",
    "platforms.<name>.access": "Who may talk to the agent there: people you have let in, or everyone.",
    "platforms.<name>.allowed_users": "Ids of accounts that may talk to the agent as guests without asking for access.",
    "platforms.<name>.busy_policy": "What happens to messages while the agent responds; empty: as elsewhere.",
    "platforms.<name>.streaming": "Show answers there while they are being written.",
    "platforms.<name>.group_activation": "When the agent answers in groups: when it is mentioned, or always.",
    "platforms.<name>.allow_bots": "Answer messages from other bots.",
    "platforms.<name>.home_channel.chat_id": "The chat for messages to this platform that name no other chat.",
    "platforms.<name>.home_channel.name": "The name of that chat.",
    "platforms.<name>.home_channel.thread_id": "A thread in that chat.",
    "platforms.<name>.settings.<name>": "How to reach the account; the platform says which settings it has.",
    "platforms.<name>.accounts.<name>.enabled": "Connect this account.",
    "platforms.<name>.accounts.<name>.settings.<name>": "How to reach one of several accounts.",
}


# --------------------------------------------------------------------------------------------------
# Keys of single settings as text: `turns.max_running`, `prices."openai:gpt-5.4-mini".input`.
#
# Always true: `parse_key(format_path(path)) == path`. A part with a dot, a quote or a space is put in double quotes.

SettingPath = tuple[str, ...]

MAX_KEY_CHARS: Final = 500
_PLAIN_PART = re.compile(r"[^\s.\"]+")
_PART = re.compile(r'("(?:[^"\\]|\\.)*")|([^\s."]+)')


def format_path(path: SettingPath) -> str:
    return ".".join(part if _PLAIN_PART.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path)


def parse_key(key: str) -> SettingPath:
    """Return the parts of a key. Raises InvalidInput."""
    parts: list[str] = []
    position = 0
    while len(key) <= MAX_KEY_CHARS:
        match = _PART.match(key, position)
        if match is None:
            break
        try:
            parts.append(json.loads(match[1]) if match[1] else match[2])
        except ValueError:
            break
        position = match.end()
        if position == len(key):
            return tuple(parts)
        if key[position] != ".":
            break
        position += 1
    raise InvalidInput(
        f"{key[:60]!r} is not the key of a setting. Write it with dots, as in turns.max_running, and put a part that"
        ' contains a dot in double quotes, as in prices."openai:gpt-5.4-mini".input.',
        key=key[:60],
    )


# --------------------------------------------------------------------------------------------------

NAME: Final = "<name>"
_LONG_TEXTS: Final = frozenset({"instructions", f"profiles.{NAME}.instructions", f"personalities.{NAME}"})
# Needed before the database can be opened.
_NOT_STORABLE: Final = {
    "database_url": "Palaver needs it to open the database. Set it in config.yaml or with PALAVER_DATABASE_URL."
}
_NEEDS_RESTART: Final = frozenset({"database_url", "web.host", "web.port", "web.public_url", "web.trusted_proxies"})
# Every secret, and the settings that say where it is sent. Those of platforms are in their manifests.
_ADDRESSES_BY_SECRET: Final[Mapping[str, tuple[str, ...]]] = {
    f"providers.{NAME}.api_key": (f"providers.{NAME}.base_url",),
    "web.search.api_key": ("web.search.url", "web.search.provider"),
    f"mcp_servers.{NAME}.args": (f"mcp_servers.{NAME}.command",),
    f"mcp_servers.{NAME}.env.{NAME}": (f"mcp_servers.{NAME}.command",),
    f"mcp_servers.{NAME}.headers.{NAME}": (f"mcp_servers.{NAME}.url",),
}
# They start a program on the server, which a thief of a browser session must not be able to do.
_TERMINAL_ONLY: Final = frozenset(
    {
        *(f"mcp_servers.{NAME}.command", f"mcp_servers.{NAME}.args", f"mcp_servers.{NAME}.env.{NAME}"),
        *("speech.transcription_command", "speech.speaking_command"),
    }
)


@dataclass(frozen=True, kw_only=True)
class SettingTemplate:
    """One setting, or all settings of one kind."""

    key: str
    form: ValueForm
    allowed: str  # the valid values, in words
    is_list: bool = False
    default: object = None
    is_secret: bool = False
    is_adapter_setting: bool = False  # the manifest of its platform describes it
    help: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.key.split("."))

    def list_addresses(self, path: SettingPath) -> list[SettingPath]:
        """Return the settings that say where the secret at a path is sent; nothing for what is no secret."""
        keys = _ADDRESSES_BY_SECRET.get(self.key, ())
        return [
            tuple(path[index] if part == NAME else part for index, part in enumerate(key.split("."))) for key in keys
        ]

    @property
    def needs_restart(self) -> bool:
        return self.key in _NEEDS_RESTART

    @property
    def is_terminal_only(self) -> bool:
        """Whether it can be changed in the terminal of the server, but not on the page."""
        return self.key in _TERMINAL_ONLY

    @property
    def unstorable_reason(self) -> str | None:
        """Why it can't be changed while Palaver runs; None if it can."""
        return _NOT_STORABLE.get(self.key)


@functools.cache
def list_templates() -> tuple[SettingTemplate, ...]:
    """Return the templates of all settings, in the order of the schema."""
    return tuple(_iterate_section(ConfigFile, ""))


@functools.cache
def _list_by_length() -> dict[int, list[SettingTemplate]]:
    by_length: dict[int, list[SettingTemplate]] = {}
    for template in list_templates():
        by_length.setdefault(len(template.parts), []).append(template)
    return by_length


def find_template(path: SettingPath) -> SettingTemplate | None:
    """Return the template of a setting; None if this is no setting, but a section or nothing known."""
    for template in _list_by_length().get(len(path), ()):
        if all(known in (NAME, part) for known, part in zip(template.parts, path, strict=True)):
            return template
    return None


def is_section(path: SettingPath) -> bool:
    """Whether settings can be below this key."""
    return any(
        len(template.parts) > len(path)
        and all(known in (NAME, part) for known, part in zip(template.parts, path, strict=False))
        for template in list_templates()
    )


def has_password(value: object) -> bool:
    """Whether a value is a URL with a password, or with a query that may hold a token."""
    if not isinstance(value, str) or "://" not in value:
        return False
    try:
        address = urlsplit(value)
    except ValueError:
        return True
    return "@" in address.netloc or bool(address.query)


def _iterate_section(section: type, prefix: str) -> Iterator[SettingTemplate]:
    defaults = {field.name: field for field in fields(section)}
    for name, hint in get_type_hints(section, include_extras=True).items():
        if get_origin(hint) is ClassVar:
            continue
        field = defaults[name]
        default = field.default if field.default is not MISSING else None
        if field.default_factory is not MISSING:
            default = field.default_factory()
        yield from _iterate_value(f"{prefix}{name}", hint, default)


def _iterate_value(key: str, hint: Any, default: object) -> Iterator[SettingTemplate]:
    hint, rule = _unwrap(hint)
    section = next((part for part in (hint, *get_args(hint)) if isinstance(part, type) and is_dataclass(part)), None)
    origin = get_origin(hint)
    if origin is dict:
        _, value_hint = get_args(hint)
        yield from _iterate_value(f"{key}.{NAME}", value_hint, None)
    elif section is not None and origin is not tuple:
        yield from _iterate_section(section, f"{key}.")
    else:
        yield _make_template(key, hint, rule, default)


def _make_template(key: str, hint: Any, rule: Rule | None, default: object) -> SettingTemplate:
    list_hint = next((part for part in (hint, *_list_options(hint)) if get_origin(part) is tuple), None)
    is_optional = type(None) in _list_options(hint)
    if list_hint is not None:
        _, item_rule = _unwrap(get_args(list_hint)[0])
        form, allowed = (item_rule.form, item_rule.allowed) if item_rule else (TEXT_FORM, "text")
        form = ValueForm(form.kind, form.choices, form.minimum, form.maximum, form.pattern, is_optional)
        allowed = f"a list; each: {allowed}"
    else:
        form, allowed = (rule.form, rule.allowed) if rule else (TEXT_FORM, "text")
    if key in _LONG_TEXTS:
        form = ValueForm("long_text", is_optional=form.is_optional)
    return SettingTemplate(
        key=key,
        form=form,
        allowed=allowed,
        is_list=list_hint is not None,
        default=list(default) if isinstance(default, tuple) else default,
        is_secret=key in _ADDRESSES_BY_SECRET,
        is_adapter_setting=hint is object,
        help=SETTING_HELP.get(key, ""),
    )


def _unwrap(hint: Any) -> tuple[Any, Rule | None]:
    """Return the type of an annotated hint, and its rule."""
    if get_origin(hint) is not Annotated:
        return hint, None
    inner, *notes = get_args(hint)
    return inner, next((note for note in notes if isinstance(note, Rule)), None)


def _list_options(hint: Any) -> tuple[Any, ...]:
    """Return the types that a union allows."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
