"""Settings: `config.yaml` and the environment, read once at start into values.

Owns the shape of the file, the names of the variables, which of them wins, and the install secret. What the
values mean is said in `domain.gateway` and `domain.policy`, whose rules are used here, not repeated.

Always true: every mistake is found in one go and reported with file, line, key and what is allowed, or with
the variable's name; nothing is guessed; no value that may be a secret is shown. Without a config.yaml neither
pydantic nor a YAML parser is loaded. Every key and every variable is in docs/reference/settings.md.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import secrets
from dataclasses import dataclass, field, is_dataclass, replace
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, get_args, get_origin, get_type_hints

from palaver.domain.errors import ConfigError
from palaver.domain.gateway import AGENT_NAMES, GatewayConfig, HomeChannel, is_agent_name
from palaver.domain.keys import DmScope
from palaver.domain.policy import FIELD_RULES, ResetMode, ResetPolicy
from palaver.domain.source import BUILT_IN, ChatType, Platform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from yaml import MappingNode, Node, SafeLoader, ScalarNode

FILE_NAME: Final = "config.yaml"
SECRET_BYTES: Final = 32
CHAT_PLATFORMS: Final = (
    Platform.TELEGRAM,
    Platform.DISCORD,
    Platform.SLACK,
    Platform.WHATSAPP,
    Platform.SIGNAL,
    Platform.MATRIX,
)

_Path = tuple[str | int, ...]  # the keys that lead to a value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything the operator decided, in one value; what may hold a password is left out of its repr."""

    home: Path
    database_url: str = field(repr=False)
    gateway: GatewayConfig
    platform_settings: Mapping[Platform, Mapping[str, object]] = field(repr=False, hash=False)


def load_settings(environ: Mapping[str, str], home: Path | None = None) -> Settings:
    """Read the settings: the environment wins over config.yaml, which wins over the defaults.

    `home` is the folder that holds config.yaml; without it, PALAVER_HOME or ~/.palaver. Nothing is written.
    """
    home = (home or _expanded(environ.get("PALAVER_HOME") or "~/.palaver", environ)).absolute()
    document = _read(home / FILE_NAME)
    file, mistakes = _validated(document) if document else (_File(), [])
    given, wrong = _overrides(environ)
    mistakes += wrong
    if not mistakes:
        file, mistakes = _overridden(file, given)
    if mistakes:
        raise ConfigError("\n".join(mistakes), file=str(home / FILE_NAME), mistakes=tuple(mistakes))
    free = {Platform(name): section.settings for name, section in file.platforms.items() if section.settings}
    return Settings(
        home=home,
        database_url=_database_url(file.database_url, home, environ),
        gateway=_gateway(file),
        platform_settings=MappingProxyType({name: MappingProxyType(own) for name, own in free.items()}),
    )


# ---- the install secret ------------------------------------------------------------------------------------


def install_secret(home: Path) -> bytes:
    """The secret of this installation, made on first use and kept in `<home>/secret` for its owner alone.

    Two processes that ask for the first time at once get the same one.
    """
    path = home / "secret"
    try:
        if not path.exists():
            _keep_secret(path, secrets.token_bytes(SECRET_BYTES))
        secret = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: the install secret: {error.strerror}", file=str(path)) from error
    if len(secret) < SECRET_BYTES:
        raise ConfigError(
            f"{path}: an install secret has at least {SECRET_BYTES} bytes, this has {len(secret)}; restore "
            "the file, or remove it and a new one is made, which changes every hidden id",
            file=str(path),
        )
    return secret


def _keep_secret(path: Path, secret: bytes) -> None:
    """Put a secret at `path` unless somebody else was faster; it appears there whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".secret.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(secret)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)


# ---- what the keys may hold --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rule:
    """What a key may hold: a test, and the same thing in words. Pydantic asks it instead of converting."""

    holds: Callable[[object], bool]
    allowed: str

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self._checked)

    def _checked(self, value: object) -> object:
        if not self.holds(value):
            raise ValueError(self.allowed)
        return value


class _NullIsEmpty:
    """Lets a section whose keys are all commented out be an empty one."""

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            lambda value: {} if value is None else value, handler(source)
        )


def _policy_rule(key: str) -> _Rule:
    return _Rule(FIELD_RULES[key].holds, FIELD_RULES[key].allowed)


def _is_database(value: object) -> bool:
    if not isinstance(value, str) or not value.strip() or "\0" in value or ":memory:" in value:
        return False
    if re.match(r"[\w+.-]{2,}:", value):
        return re.match(r"sqlite:///.|postgres(ql)?://.", value) is not None
    return re.match(r"\w+\s*=", value) is None  # the other way to write a PostgreSQL address


def _is_platform(value: object) -> bool:
    """A platform we know, or a plugin's whose name does not look like a slip of the pen."""
    if not isinstance(value, str) or not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", value):
        return False
    return value in BUILT_IN or not difflib.get_close_matches(value, BUILT_IN, cutoff=0.75)


_BOOL: Final = _Rule(lambda value: isinstance(value, bool), "true or false")
_TEXT: Final = _Rule(lambda value: isinstance(value, str) and value.strip() != "", "text")
_TEXT_OR_NOTHING: Final = _Rule(lambda value: value is None or isinstance(value, str), "text")
_DATABASE: Final = _Rule(_is_database, "sqlite:///path, postgresql://user@host/name or the path of a file")
_AGENT: Final = _Rule(is_agent_name, AGENT_NAMES)
_SCOPE: Final = _Rule(lambda value: value in tuple(DmScope), "chat, platform, person or shared")
_PLATFORM: Final = _Rule(_is_platform, ", ".join(BUILT_IN))
_CHAT_TYPE: Final = _Rule(lambda value: value in tuple(ChatType), ", ".join(ChatType))
_MODE: Final = _policy_rule("mode")
_MINUTES: Final = _policy_rule("idle_minutes")
_HOUR: Final = _policy_rule("at_hour")
_ZONE: Final = _policy_rule("timezone")
_ZONE_OR_NOTHING: Final = _Rule(lambda value: value is None or _ZONE.holds(value), _ZONE.allowed)
_NULL_IS_EMPTY: Final = _NullIsEmpty()


# ---- the shape of the file ---------------------------------------------------------------------------------


class _Keys:
    """A section of config.yaml: a plain dataclass, so that defaults cost no import; pydantic fills it."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
class _Reset(_Keys):
    mode: Annotated[str, _MODE] = "none"
    idle_minutes: Annotated[int, _MINUTES] = 1440
    at_hour: Annotated[int, _HOUR] = 4
    timezone: Annotated[str | None, _ZONE_OR_NOTHING] = None
    notify: Annotated[bool, _BOOL] = True


@dataclass(frozen=True, kw_only=True)
class _Sessions(_Keys):
    group_per_user: Annotated[bool, _BOOL] = True
    thread_per_user: Annotated[bool, _BOOL] = False
    dm_scope: Annotated[str, _SCOPE] = "chat"


@dataclass(frozen=True, kw_only=True)
class _Privacy(_Keys):
    redact_pii: Annotated[bool, _BOOL] = False


@dataclass(frozen=True, kw_only=True)
class _Home(_Keys):
    chat_id: Annotated[str, _TEXT]
    name: Annotated[str | None, _TEXT_OR_NOTHING] = None
    thread_id: Annotated[str | None, _TEXT_OR_NOTHING] = None


@dataclass(frozen=True, kw_only=True)
class _Platform(_Keys):
    enabled: Annotated[bool, _BOOL] = True
    home_channel: _Home | None = None
    settings: Annotated[dict[str, object], _NULL_IS_EMPTY] = field(default_factory=dict)  # the adapter's own


_SomeReset = Annotated[_Reset, _NULL_IS_EMPTY]
_ResetByPlatform = dict[Annotated[str, _PLATFORM], _SomeReset]
_ResetByType = dict[Annotated[str, _CHAT_TYPE], _SomeReset]
_Platforms = dict[Annotated[str, _PLATFORM], Annotated[_Platform, _NULL_IS_EMPTY]]


@dataclass(frozen=True, kw_only=True)
class _File(_Keys):
    database_url: Annotated[str, _DATABASE] = "palaver.db"
    timezone: Annotated[str, _ZONE] = "UTC"
    session_reset: _SomeReset = field(default_factory=_Reset)
    reset_by_platform: Annotated[_ResetByPlatform, _NULL_IS_EMPTY] = field(default_factory=dict)
    reset_by_type: Annotated[_ResetByType, _NULL_IS_EMPTY] = field(default_factory=dict)
    sessions: Annotated[_Sessions, _NULL_IS_EMPTY] = field(default_factory=_Sessions)
    privacy: Annotated[_Privacy, _NULL_IS_EMPTY] = field(default_factory=_Privacy)
    agent: Annotated[str, _AGENT] = "main"
    platforms: Annotated[_Platforms, _NULL_IS_EMPTY] = field(default_factory=dict)


def known_keys() -> tuple[str, ...]:
    """Every key that config.yaml may hold, dotted; `<name>` stands for what the operator names."""
    return tuple(_keys_of(_File))


def _keys_of(section: type, prefix: str = "") -> Iterator[str]:
    for name, hint in get_type_hints(section).items():
        named = "<name>." if get_origin(hint) is dict else ""
        inner = next((part for part in (hint, *get_args(hint)) if is_dataclass(part)), None)
        if isinstance(inner, type):
            yield from _keys_of(inner, f"{prefix}{name}.{named}")
        elif get_origin(hint) is not ClassVar:
            yield f"{prefix}{name}"


# ---- the environment ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variable:
    """An environment variable, and the key of config.yaml that it wins over."""

    name: str
    key: str
    rule: _Rule = _TEXT
    read: Callable[[str], object] = str


def _number(text: str) -> object:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text


def _truth(text: str) -> object:
    words = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
    return words.get(text.lower(), text)


VARIABLES: Final = (
    Variable("PALAVER_DATABASE_URL", "database_url", _DATABASE),
    Variable("PALAVER_TIMEZONE", "timezone", _ZONE),
    Variable("PALAVER_SESSION_RESET_MODE", "session_reset.mode", _MODE),
    Variable("PALAVER_SESSION_RESET_IDLE_MINUTES", "session_reset.idle_minutes", _MINUTES, _number),
    Variable("PALAVER_SESSION_RESET_AT_HOUR", "session_reset.at_hour", _HOUR, _number),
    Variable("PALAVER_DM_SCOPE", "sessions.dm_scope", _SCOPE),
    Variable("PALAVER_REDACT_PII", "privacy.redact_pii", _BOOL, _truth),
    *(
        Variable(f"{platform.upper()}_HOME_CHANNEL{suffix}", f"platforms.{platform}.home_channel.{key}")
        for platform in CHAT_PLATFORMS
        for suffix, key in (("", "chat_id"), ("_NAME", "name"), ("_THREAD_ID", "thread_id"))
    ),
)


def _overrides(environ: Mapping[str, str]) -> tuple[dict[str, object], list[str]]:
    """What the environment says, by key, and what is wrong with it; an empty variable says nothing."""
    given: dict[str, object] = {}
    mistakes = []
    for variable in VARIABLES:
        text = environ.get(variable.name, "").strip()
        if not text:
            continue
        value = variable.read(text)
        if variable.rule.holds(value):
            given[variable.key] = value
        else:
            shown = _shown((variable.key,), value)
            mistakes.append(f"{variable.name}: {shown} is not allowed ({variable.rule.allowed})")
    return given, mistakes


def _overridden(file: _File, given: Mapping[str, object]) -> tuple[_File, list[str]]:
    """The file with what the environment says put over it, and what does not go together."""
    mistakes = []
    for key, value in given.items():
        if not key.startswith("platforms."):
            file = _put(file, key.split("."), value)
    for platform in CHAT_PLATFORMS:
        prefix = f"platforms.{platform}.home_channel."
        said = {key.removeprefix(prefix): str(text) for key, text in given.items() if key.startswith(prefix)}
        section = file.platforms.get(platform) or _Platform(enabled=False)
        home = section.home_channel
        if "chat_id" in said and (home is None or home.chat_id != said["chat_id"]):
            home = _Home(chat_id=said["chat_id"])  # another chat: name and thread of the file's are not its own
        if said and home is None:
            names = [variable.name for variable in VARIABLES if variable.key.removeprefix(prefix) in said]
            needed = f"{platform.upper()}_HOME_CHANNEL"
            mistakes.append(f"{', '.join(names)}: there is no home channel to go with it (set {needed})")
        elif said and home:
            section = replace(section, home_channel=replace(home, **said))
            file = replace(file, platforms={**file.platforms, platform: section})
    return file, mistakes


def _put(section: Any, path: list[str], value: object) -> Any:
    """A copy of a section with one key in it changed."""
    head, *rest = path
    return replace(section, **{head: _put(getattr(section, head), rest, value) if rest else value})


# ---- from the file to the values ---------------------------------------------------------------------------


def _gateway(file: _File) -> GatewayConfig:
    def policy(keys: _Reset) -> ResetPolicy:
        return ResetPolicy(
            mode=ResetMode(keys.mode),
            idle_minutes=keys.idle_minutes,
            at_hour=keys.at_hour,
            timezone=keys.timezone or file.timezone,
            notify=keys.notify,
        )

    sections = {Platform(name): section for name, section in file.platforms.items()}
    homes = {platform: section.home_channel for platform, section in sections.items()}
    return GatewayConfig(
        connected_platforms=tuple(platform for platform, section in sections.items() if section.enabled),
        home_channels={
            platform: HomeChannel(platform, home.chat_id, home.name or "", home.thread_id)
            for platform, home in homes.items()
            if home
        },
        default_reset_policy=policy(file.session_reset),
        reset_by_type={ChatType(name): policy(keys) for name, keys in file.reset_by_type.items()},
        reset_by_platform={Platform(name): policy(keys) for name, keys in file.reset_by_platform.items()},
        group_sessions_per_user=file.sessions.group_per_user,
        thread_sessions_per_user=file.sessions.thread_per_user,
        dm_scope=DmScope(file.sessions.dm_scope),
        agent=file.agent,
        redact_pii=file.privacy.redact_pii,
    )


def _database_url(given: str, home: Path, environ: Mapping[str, str]) -> str:
    """The address of the database; a path becomes a full one, and one that is relative begins at home."""
    scheme, separator, rest = given.partition("://")
    if separator and scheme != "sqlite":
        return f"postgresql://{rest}"
    return f"sqlite:///{home / _expanded(given.removeprefix('sqlite:///'), environ)}"


def _expanded(path: str, environ: Mapping[str, str]) -> Path:
    """A path, with `~` at its head as the home of the user."""
    if path == "~" or path.startswith("~/"):
        return Path(environ.get("HOME") or Path.home()) / path[2:]
    return Path(path)


# ---- reading the file --------------------------------------------------------------------------------------


def _read(path: Path) -> _Document | None:
    """The file as data; None when there is none or nothing in it."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})", file=str(path)) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{FILE_NAME}:{line}: this is not UTF-8 text", file=str(path)) from error
    return _parsed(text, path)


def _parsed(text: str, path: Path) -> _Document | None:
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None or root.tag == "tag:yaml.org,2002:null":
            return None
        if isinstance(root, yaml.MappingNode):
            return _Document(loader, root)
        kind = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
        place, what = f"{root.start_mark.line + 1}", f"settings are lines of `key: value`, this is {kind}"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1"
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        what = f"this is not YAML: {_without_quotations(problem)}"
    except yaml.reader.ReaderError as error:
        line, column = text.count("\n", 0, error.position), text.rfind("\n", 0, error.position)
        place = f"{line + 1}:{error.position - column}"
        what = f"this is not YAML: the character U+{ord(text[error.position]):04X} is not allowed"
    except RecursionError:
        place, what = "1", "this is nested too deeply"
    raise ConfigError(f"{FILE_NAME}:{place}: {what}", file=str(path))


def _without_quotations(problem: str) -> str:
    """The parser's words without pieces of the file, which may be secret; one character may stay."""
    return re.sub(
        r"'([^']*)'|\"([^\"]*)\"",
        lambda found: found[0] if re.fullmatch(r"\\?.|<[a-z ]+>", found[1] or found[2] or "") else "'…'",
        problem,
    )


class _Document:
    """The file as plain data, the line of every key in it, and what is wrong with it."""

    def __init__(self, loader: SafeLoader, root: MappingNode) -> None:
        self.lines: dict[_Path, int] = {}
        self.mistakes: list[tuple[int, str]] = []
        self.unreadable: set[_Path] = set()
        self._loader = loader
        self._open: set[int] = set()  # the nodes being read, to notice one that holds itself
        self._flat: set[int] = set()  # the mappings whose merge keys have been followed
        self.data = self._mapping(root, ())

    def complain(self, path: _Path, text: str, line: int | None = None) -> None:
        """Note a mistake at a key, or at the nearest section around one that is not there."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        line = line or self.lines.get(known, 1)
        key = ".".join(map(str, path))
        self.mistakes.append((line, f"{FILE_NAME}:{line}: {key}: {text}" if key else f"{FILE_NAME}:{line}: {text}"))

    def _value(self, node: Node, path: _Path) -> object:
        from yaml import MappingNode, ScalarNode, SequenceNode

        if id(node) in self._open:
            self._give_up(path, "this holds itself")
            return None
        self._open.add(id(node))
        value: object = None
        if isinstance(node, ScalarNode):
            value = self._scalar(node, path)
        elif isinstance(node, MappingNode) and node.tag == "tag:yaml.org,2002:map":
            value = self._mapping(node, path)
        elif isinstance(node, SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            value = [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
        else:
            self._give_up(path, "a tag has no meaning here")
        self._open.remove(id(node))
        return value

    def _mapping(self, node: MappingNode, path: _Path) -> dict[str, object]:
        if id(node) not in self._flat:
            self._check_keys(node, path)
            self._loader.flatten_mapping(node)
            self._flat.add(id(node))
        data: dict[str, object] = {}
        for key, value in node.value:
            if isinstance(key.value, str):
                here = (*path, key.value)
                self.lines[here] = key.start_mark.line + 1
                data[key.value] = self._value(value, here)
        return data

    def _check_keys(self, node: MappingNode, path: _Path) -> None:
        first: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key.value, str):
                self.complain(path, "a key is plain text, not a list or a section", line)
            elif key.value in first:
                self.complain((*path, key.value), f"given twice (first on line {first[key.value]})", line)
            else:
                first[key.value] = line

    def _scalar(self, node: ScalarNode, path: _Path) -> object:
        from yaml import YAMLError

        if node.tag not in self._loader.yaml_constructors:
            self._give_up(path, "a tag has no meaning here")
            return None
        free = path[0] == "platforms" and path[2:3] == ("settings",)
        if path[-1] in _AS_WRITTEN and not free and node.tag != "tag:yaml.org,2002:null":
            return node.value
        try:
            return self._loader.construct_object(node)
        except (YAMLError, ValueError, LookupError, AttributeError):  # as it fails on !!int x, !!bool x …
            self._give_up(path, "this is not a value of the kind it is written as")
            return None

    def _give_up(self, path: _Path, text: str) -> None:
        self.unreadable.add(path)
        self.complain(path, text)


# Ids and names, of which 007 and 1712345678.1200 must not be taken for numbers.
_AS_WRITTEN: Final = frozenset({"chat_id", "thread_id", "name", "database_url", "timezone", "agent"})


# ---- what is wrong, in words -------------------------------------------------------------------------------

_NAMED: Final = frozenset({"platforms", "reset_by_platform", "reset_by_type"})  # the operator names their keys
_SECRET: Final = re.compile("token|secret|password|key", re.IGNORECASE)


def _validated(document: _Document) -> tuple[_File, list[str]]:
    """The file in its known shape, and every mistake in it, by line."""
    from pydantic import TypeAdapter, ValidationError

    file = _File()
    try:
        file = TypeAdapter(_File).validate_python(document.data)
    except ValidationError as errors:
        for error in errors.errors(include_url=False):
            path = tuple(part for part in error["loc"] if part != "[key]")
            if path not in document.unreadable:
                document.complain(path, _in_words(error))
    return file, [text for _, text in sorted(document.mistakes, key=itemgetter(0))]


def _in_words(error: Mapping[str, Any]) -> str:
    """A mistake that pydantic found, as the operator should read it."""
    path: _Path = error["loc"]
    match error["type"]:
        case "unexpected_keyword_argument":
            return _unknown(path)
        case "missing":
            return "this is missing"
        case "value_error" if path[-1] == "[key]":
            known = tuple(map(str, ChatType if path[0] == "reset_by_type" else BUILT_IN))
            return f"unknown name ({_nearest(str(path[-2]), known)})"
        case "value_error":
            return f"{_shown(path, error['input'])} is not allowed ({error['ctx']['error']})"
        case _:
            return f"{_shown(path, error['input'])} is not allowed (a section with keys of its own)"


def _unknown(path: _Path) -> str:
    """What to say of a key that does not exist: the nearest one that does, here or in another section."""
    *section, key = (str(part) for part in path)
    if len(section) > 1 and section[0] in _NAMED:
        section[1] = "<name>"
    prefix = "".join(f"{part}." for part in section)
    here = {known.removeprefix(prefix).partition(".")[0] for known in known_keys() if known.startswith(prefix)}
    elsewhere = [known for known in known_keys() if known.rpartition(".")[2] == key]
    if elsewhere and not difflib.get_close_matches(key, here):
        return f"unknown key (did you mean {elsewhere[0]}?)"
    return f"unknown key ({_nearest(key, sorted(here))})"


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"


def _shown(path: _Path, value: object) -> str:
    """A value as it may stand in a message: short, on one line, and never a secret."""
    if any(_SECRET.search(str(part)) for part in path):
        return "…"
    if isinstance(value, str) and "database_url" in path:
        return f"{value.partition('://')[0]}://…" if "://" in value else "…"
    if isinstance(value, str) and len(value) > 60:
        value = f"{value[:59]}…"
    kinds = {dict: "a section", list: "a list", type(None): "nothing"}
    return kinds.get(type(value)) or json.dumps(value, ensure_ascii=False, default=str)
