"""The folder of Hermes, or of one of its profiles: conversations and where each is stored, people, and settings."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, InvalidSource
from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.jobs.schedule import load_zone
from palaver.transfer.imported import ImportedAccount, ImportedHomeChannel, ImportedProject, ImportProblem
from palaver.transfer.reader_kit.export_files import UnreadableItem
from palaver.transfer.reader_kit.values import (
    as_count,
    as_dict,
    as_id,
    as_list,
    as_text,
    is_plain,
    read_json_file,
    read_text_file,
)
from palaver.transfer.readers.hermes.records import read_seconds
from palaver.transfer.readers.hermes.state_database import (
    Chain,
    Lineage,
    Route,
    StateDatabase,
    convert_chat_id,
    convert_origin,
    convert_platform,
    parse_stored_json,
    read_lineage,
)
from palaver.transfer.readers.hermes.transcripts import read_members

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo
    from pathlib import Path


_MAX_FILE_CHARS: Final = 4_000_000
_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Z][A-Z0-9_]{2,80})\s*=\s*(?P<value>.*)")
_PLATFORM_SETTING = re.compile(
    r"(?P<platform>[A-Z][A-Z0-9_]*?)_(?P<kind>ALLOWED_USERS|HOME_(?:CHANNEL|ROOM|ADDRESS))(?P<part>_NAME|_THREAD_ID)?"
)
_PLATFORM_NAMES: Final = {"qq": "qqbot"}
_RESET_VARIABLES: Final = {"SESSION_IDLE_MINUTES": "idle_minutes", "SESSION_RESET_HOUR": "at_hour"}
_TRUE_WORDS: Final = frozenset({"true", "1", "yes", "on"})
_FALSE_WORDS: Final = frozenset({"false", "0", "no", "off"})
_DATED_ID = re.compile(r"(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)")


class HermesHome:
    """The folder of Hermes, or of one of its profiles. Files that cannot be read are reported, and left out."""

    def __init__(self, path: Path, root: Path, profile: str) -> None:
        self.path = path
        self.profile = profile
        self._root = root  # the folder of the import
        self._problems: list[ImportProblem] = []
        self.settings = _read_settings(self)
        self.zone = _load_zone(self)  # None: of this machine
        sessions, page = path / "sessions", path / "webui"
        self.database = _open_database(self)
        self.transcripts = _list_files(sessions, ".jsonl")
        self.snapshots = {
            name.removeprefix("session_"): path
            for name, path in _list_files(sessions, ".json").items()
            if name.startswith("session_")
        }
        self.pages = _list_files(page / "sessions", ".json")
        rows: list[dict[str, Any]] = []
        if self.database is not None:
            try:
                rows.extend(self.database.list_links())
            except InvalidForeignDatabase as error:
                self.report(self.database.name, error)
        self.lineage = read_lineage(rows, frozenset(self.pages))
        self.projects = _read_projects(self)
        self.routes = _read_routes(self)
        # The chats of sessions that a route names.
        self.origins = {route.session_id: route.origin for route in self.routes.values()}
        # The conversations that chats are on, by their first session.
        self.current = find_current(self.lineage, self.routes)
        if self.lineage.delegate_count:
            what = f"Sub-agent sessions are left out, as in Hermes' own lists: {self.lineage.delegate_count}."
            self.report(path / "state.db", what)

    def make_name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)

    def report(self, where: Path | str, what: object) -> None:
        name = where if isinstance(where, str) else self.make_name(where)
        self._problems.append(ImportProblem(where=name, what=str(what)))

    def take_problems(self) -> list[ImportProblem]:
        """Return what was reported since the last call, each problem once."""
        problems, self._problems = self._problems, []
        return list(dict.fromkeys(problems))

    def read_text(self, path: Path) -> str | None:
        return read_text_file(path, self.make_name(path), self._problems, _MAX_FILE_CHARS)

    def read_json(self, path: Path, what: str) -> Any:
        return read_json_file(path, self.make_name(path), self._problems, what)

    def make_origin_id(self, session_id: str) -> str:
        return f"{self.profile}/{session_id}" if self.profile else session_id

    def list_chains(self) -> list[Chain]:
        """Return all conversations: those of the database, and those that are only in files."""
        known = self.lineage.links
        only_files = {*self.transcripts, *self.snapshots, *self.pages} - known.keys()
        return [*self.lineage.chains, *(Chain([each], self._find_start(each)) for each in sorted(only_files))]

    @cached_property
    def chats(self) -> dict[tuple[str, str], SessionSource]:
        """The chats of the routes, by platform and id, and threads by their own ids."""
        chats: dict[tuple[str, str], SessionSource] = {}
        for route in self.routes.values():
            with suppress(InvalidSource):
                if source := convert_origin(route.origin):
                    chats.setdefault((str(source.platform), source.chat_id), source)
                    if source.thread_id == as_id(route.origin.get("chat_id")):
                        chats[str(source.platform), source.thread_id] = source
        return chats

    @cached_property
    def home_channels(self) -> list[ImportedHomeChannel]:
        """The home channel of each platform, as the chat that is known from conversations, if it is."""
        channels = []
        for name, chat in self.settings.homes.items():
            try:
                source = _build_home_channel(convert_platform(name), chat, self.chats)
                channels.append(ImportedHomeChannel(source=source))
            except InvalidSource as error:
                self.report(f"home channel of {name}", error)
        return channels

    @cached_property
    def jobs(self) -> list[dict[str, Any]]:
        data = self.read_json(self.path / "cron" / "jobs.json", "Jobs")
        return [as_dict(job) for job in (data if isinstance(data, list) else as_list(as_dict(data).get("jobs")))]

    def _find_start(self, session_id: str) -> float:
        """Return when a conversation began that the database does not know."""
        zone = self.zone
        if page := self.pages.get(session_id):
            with suppress(UnreadableItem, OSError):
                for key, value in read_members(page, ("messages",)):
                    if key == "created_at" and (seconds := read_seconds(value, zone)):
                        return seconds
                    if key == "messages":
                        break
        if dated := _DATED_ID.match(session_id):
            seconds = read_seconds("{}-{}-{}T{}:{}:{}".format(*dated.groups()), zone)
            if seconds:
                return seconds
        path = self.transcripts.get(session_id) or self.snapshots.get(session_id) or self.pages[session_id]
        with suppress(OSError):
            return path.stat().st_mtime
        return 0.0


def find_current(lineage: Lineage, routes: dict[str, Route]) -> dict[str, Route | None]:
    """Find the conversation that the next message of each chat continues, as Hermes does when it starts."""
    open_sessions = lineage.find_open_sessions()
    current: dict[str, Route | None] = {}
    for key, route in routes.items():
        link = lineage.links.get(route.session_id)
        has_ended = link is not None and not link.is_open and link.end_reason != "compression"
        target = open_sessions.get(key, "") if has_ended else route.session_id
        if target and not route.is_suspended:
            current[lineage.roots.get(target, target)] = route
    for key, session_id in open_sessions.items():
        if key not in routes:
            current.setdefault(lineage.roots.get(session_id, session_id), None)
    return current


def _open_database(home: HermesHome) -> StateDatabase | None:
    path = home.path / "state.db"
    if not path.exists():
        return None
    if not is_plain(path):
        home.report(path, "The file cannot be read: it is a link.")
        return None
    try:
        return StateDatabase(path, home.make_name(path), home.zone)
    except InvalidForeignDatabase as error:
        home.report(path, error)
        return None


def _list_files(folder: Path, ending: str) -> dict[str, Path]:
    """Return the files of a folder by their names without the ending; names that start with `_` are no sessions."""
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return {}
    return {
        path.name.removesuffix(ending): path
        for path in found
        if path.name.endswith(ending) and path.name[0] not in "._" and path.is_file() and is_plain(path)
    }


def read_accounts(home: HermesHome) -> Iterator[ImportedAccount]:
    """Read allow-lists and pairings; each person on a platform comes once."""
    accounts: dict[tuple[str, str], ImportedAccount] = {}
    for account in home.settings.allowed:
        _add_account(home, accounts, account)
    pattern = "pairing/*-approved.json"
    for path in (*sorted(home.path.glob(pattern)), *sorted(home.path.glob(f"platforms/{pattern}"))):
        platform = path.name.removesuffix("-approved.json")
        for user_id, details in as_dict(home.read_json(path, "Pairings")).items():
            name = as_text(as_dict(details).get("user_name"))
            _add_account(home, accounts, ImportedAccount(platform=platform, user_id=user_id, name=name))
    chats = home.chats.values()
    names = {(str(chat.platform), chat.user_id): chat.user_name for chat in chats if chat.user_name}
    for key, account in accounts.items():
        yield account if account.name else replace(account, name=names.get(key, ""))


def _add_account(home: HermesHome, accounts: dict[tuple[str, str], ImportedAccount], account: ImportedAccount) -> None:
    if account.user_id == "*":
        place = f"on {account.platform}" if account.platform else "on every platform"
        what = (
            f"Everyone was allowed {place}. That is not imported: set who may talk to the agent in the server settings."
        )
        home.report("allow-list", what)
        return
    if not account.platform:
        home.report("GATEWAY_ALLOWED_USERS", f"{account.user_id} names no platform, so the person is left out.")
        return
    try:
        platform = convert_platform(account.platform)
    except InvalidSource as error:
        home.report("allow-list", error)
        return
    key = (str(platform), convert_chat_id(platform, account.user_id))
    known = accounts.get(key, ImportedAccount(platform=key[0], user_id=key[1]))
    accounts[key] = replace(known, name=known.name or account.name, is_owner=known.is_owner or account.is_owner)


def _build_home_channel(
    platform: Platform, home: HomeChat, chats: dict[tuple[str, str], SessionSource]
) -> SessionSource:
    chat_id = convert_chat_id(platform, home.chat_id)
    known = chats.get((str(platform), chat_id))
    chat_type = known.chat_type if known else _guess_chat_type(platform, home.chat_id)
    user_id = (known.user_id if known else chat_id) if chat_type is ChatType.DM else None
    return SessionSource(
        platform,
        chat_id,
        chat_type=chat_type,
        chat_name=(known.chat_name if known else None) or home.name or None,
        user_id=user_id,
        user_name=known.user_name if known and chat_type is ChatType.DM else None,
        thread_id=home.thread_id or None,
    )


def _guess_chat_type(platform: Platform, chat_id: str) -> ChatType:
    if platform == Platform.DISCORD:
        return ChatType.CHANNEL
    is_group = {
        Platform.TELEGRAM: chat_id.startswith("-"),
        Platform.SLACK: not chat_id.startswith("D"),
        Platform.MATRIX: True,
        Platform.SIGNAL: chat_id.startswith("group:"),
        Platform.WHATSAPP_WEB: chat_id.endswith("@g.us"),
    }.get(platform, False)
    return ChatType.GROUP if is_group else ChatType.DM


def _read_routes(home: HermesHome) -> dict[str, Route]:
    """Read all routes by session key; like Hermes, the database wins over `sessions.json`."""
    path = home.path / "sessions" / "sessions.json"
    listed = as_dict(home.read_json(path, "Chats and their sessions")).items()
    entries = [(home.make_name(path), key, as_dict(entry)) for key, entry in listed if not key.startswith("_")]
    if (database := home.database) is not None:
        try:
            for row in database.read_routes():
                entry = as_dict(parse_stored_json(row["entry_json"], None))
                entries.append((database.name, as_text(row["session_key"]), entry))
        except InvalidForeignDatabase as error:
            home.report(database.name, error)
    routes: dict[str, Route] = {}
    for where, key, entry in entries:
        session_id, override = as_id(entry.get("session_id")), as_dict(entry.get("model_override"))
        if not session_id:
            home.report(f"{where}, {key}", "The entry names no session.")
            continue
        routes[key] = Route(
            session_id=session_id,
            origin=as_dict(entry.get("origin")),
            is_suspended=bool(entry.get("suspended")),
            model=as_text(override.get("model")),
            provider=as_text(override.get("provider")),
            last_prompt_tokens=as_count(entry.get("last_prompt_tokens")),
        )
    return routes


def _read_projects(home: HermesHome) -> dict[str, ImportedProject]:
    projects = {}
    for item in map(as_dict, as_list(home.read_json(home.path / "webui" / "projects.json", "Projects"))):
        project_id, title = as_text(item.get("project_id")), as_text(item.get("name")).strip()
        if project_id and title:
            projects[project_id] = ImportedProject(name=title, color=as_text(item.get("color")) or None)
    return projects


@dataclass(frozen=True, slots=True)
class HomeChat:
    chat_id: str
    name: str = ""
    thread_id: str = ""


@dataclass(slots=True)
class HermesSettings:
    timezone: str = ""
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    homes: dict[str, HomeChat] = field(default_factory=dict)  # by platform
    allowed: list[ImportedAccount] = field(default_factory=list)  # without a platform: on every one
    config: dict[str, Any] = field(default_factory=dict, repr=False)  # of config.yaml, with its section `gateway`
    legacy: dict[str, Any] = field(default_factory=dict, repr=False)  # of gateway.json
    reset_variables: dict[str, str] = field(default_factory=dict)  # fields of the reset policy from the environment

    @property
    def documents(self) -> tuple[dict[str, Any], ...]:
        return self.config, self.legacy

    def get(self, key: str) -> Any:
        """Return what the first file that has this key says."""
        return next((document[key] for document in self.documents if key in document), None)


def _read_settings(home: HermesHome) -> HermesSettings:
    """Read the three files; what the first of them says wins, as in Hermes."""
    settings = HermesSettings()
    _apply_environment(settings, home.read_text(home.path / ".env") or "")
    config = _read_document(home, home.path / "config.yaml")
    settings.config = {**as_dict(config.get("gateway")), **config}
    settings.legacy = _read_document(home, home.path / "gateway.json")
    settings.timezone = settings.timezone or as_text(settings.get("timezone")).strip()
    settings.group_sessions_per_user = _read_switch(settings.get("group_sessions_per_user"), default=True)
    settings.thread_sessions_per_user = _read_switch(settings.get("thread_sessions_per_user"), default=False)
    for document in settings.documents:
        for platform, section in as_dict(document.get("platforms")).items():
            if isinstance(platform, str):
                _apply_platform(settings, platform.lower(), as_dict(section))
    return settings


def _read_switch(value: object, *, default: bool) -> bool:
    """Read a value as Hermes does, which takes words, too."""
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE_WORDS else False if word in _FALSE_WORDS else default
    return default if value is None else bool(value)


def _apply_environment(settings: HermesSettings, text: str) -> None:
    chats: dict[str, dict[str, str]] = {}
    for name, value in _read_variables(text):
        if name == "HERMES_TIMEZONE":
            settings.timezone = value
        elif name in _RESET_VARIABLES:
            settings.reset_variables[_RESET_VARIABLES[name]] = value
        elif match := _PLATFORM_SETTING.fullmatch(name):
            platform = _PLATFORM_NAMES.get(match["platform"].lower(), match["platform"].lower())
            if match["kind"] == "ALLOWED_USERS":
                platform = "" if platform == "gateway" else platform.removesuffix("_group")
                settings.allowed += [ImportedAccount(platform=platform, user_id=user) for user in _split(value)]
            else:
                chats.setdefault(platform, {})[match["part"] or ""] = value
    for platform, parts in chats.items():
        if parts.get(""):
            settings.homes[platform] = HomeChat(parts[""], parts.get("_NAME", ""), parts.get("_THREAD_ID", ""))


def _read_variables(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        value = match["value"].strip()
        if value[:1] in {'"', "'"}:
            value = value[1:].partition(value[0])[0]
        else:
            value = value.partition(" #")[0].strip()
        yield match["name"], value


def _read_document(home: HermesHome, path: Path) -> dict[str, Any]:
    """Read a file of settings; empty if it is missing or damaged."""
    import yaml

    text = home.read_text(path) or ""
    is_json = path.suffix == ".json"
    try:
        return as_dict((json.loads if is_json else yaml.safe_load)(text)) if text.strip() else {}
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else getattr(error, "lineno", 1)
        what = f"This is not valid {'JSON' if is_json else 'YAML'}; its settings are left out."
        home.report(f"{home.make_name(path)}, line {line}", what)
        return {}


def _apply_platform(settings: HermesSettings, platform: str, section: dict[str, Any]) -> None:
    extra = {**as_dict(section.get("extra")), **section}
    home = as_dict(section.get("home_channel"))
    if (chat_id := as_id(home.get("chat_id"))) and platform not in settings.homes:
        settings.homes[platform] = HomeChat(chat_id, as_text(home.get("name")), as_id(home.get("thread_id")))
    for key, is_admin in (("allow_from", False), ("allow_admin_from", True), ("group_allow_admin_from", True)):
        users = extra.get(key)
        ids = _split(users) if isinstance(users, str) else filter(None, map(as_id, as_list(users)))
        settings.allowed += [ImportedAccount(platform=platform, user_id=each, is_owner=is_admin) for each in ids]


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _load_zone(home: HermesHome) -> tzinfo | None:
    name = home.settings.timezone
    if not name:
        return None
    try:
        return load_zone(name)
    except InvalidInput:
        home.report("timezone", f"{name!r} is not a time zone; the one of this machine is used.")
        home.settings.timezone = ""
        return None
