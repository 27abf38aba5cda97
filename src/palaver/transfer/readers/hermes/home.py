"""The folder of Hermes, or of one of its profiles: which conversations are in it, and where each is stored."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput, InvalidSource
from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.jobs.schedule import load_zone
from palaver.transfer.imported import ImportedAccount, ImportedHomeChannel, ImportProblem
from palaver.transfer.reader_kit.values import (
    as_dict,
    as_id,
    as_list,
    as_text,
    is_plain,
    read_json_file,
    read_text_file,
)
from palaver.transfer.readers.hermes.jobs import convert_chat_id, convert_origin, convert_platform
from palaver.transfer.readers.hermes.records import read_seconds
from palaver.transfer.readers.hermes.state_database import (
    Chain,
    Lineage,
    Route,
    StateDatabase,
    open_state_database,
    read_lineage,
    read_routes,
)
from palaver.transfer.readers.hermes.transcripts import UnreadableObject, read_members, read_projects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import tzinfo
    from pathlib import Path


_MAX_FILE_CHARS: Final = 4_000_000
_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Z][A-Z0-9_]{2,80})\s*=\s*(?P<value>.*)")
_PLATFORM_SETTING = re.compile(
    r"(?P<platform>[A-Z][A-Z0-9_]*?)_(?P<kind>ALLOWED_USERS|HOME_(?:CHANNEL|ROOM|ADDRESS))(?P<part>_NAME|_THREAD_ID)?"
)
_PLATFORM_NAMES: Final = {"qq": "qqbot"}

_DATED_ID = re.compile(r"(\d{8})_(\d{6})")


@dataclass(frozen=True, slots=True)
class HomeChat:
    platform: str
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
    problems: list[ImportProblem] = field(default_factory=list)


def read_settings(folder: Path, make_name: Callable[[Path], str]) -> HermesSettings:
    """Read the three files; what the first of them says wins, as in Hermes."""
    settings = HermesSettings()

    def read_text(path: Path) -> str:
        return read_text_file(path, make_name(path), settings.problems, _MAX_FILE_CHARS) or ""

    _apply_environment(settings, read_text(folder / ".env"))
    for file_name, parse in (("config.yaml", _parse_yaml), ("gateway.json", _parse_json)):
        text = read_text(folder / file_name)
        document = parse(text, make_name(folder / file_name), settings) if text.strip() else {}
        _apply_document(settings, document)
    return settings


def _apply_environment(settings: HermesSettings, text: str) -> None:
    chats: dict[str, dict[str, str]] = {}
    for name, value in _read_variables(text):
        if name == "HERMES_TIMEZONE":
            settings.timezone = value
        elif match := _PLATFORM_SETTING.fullmatch(name):
            platform = _PLATFORM_NAMES.get(match["platform"].lower(), match["platform"].lower())
            if match["kind"] == "ALLOWED_USERS":
                platform = "" if platform == "gateway" else platform.removesuffix("_group")
                settings.allowed += [ImportedAccount(platform=platform, user_id=user) for user in _split(value)]
            else:
                chats.setdefault(platform, {})[match["part"] or ""] = value
    for platform, parts in chats.items():
        if parts.get(""):
            settings.homes[platform] = HomeChat(
                platform, parts[""], parts.get("_NAME", ""), parts.get("_THREAD_ID", "")
            )


def _read_variables(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or not (match["name"] == "HERMES_TIMEZONE" or _PLATFORM_SETTING.fullmatch(match["name"])):
            continue
        value = match["value"].strip()
        if value[:1] in {'"', "'"}:
            value = value[1:].partition(value[0])[0]
        else:
            value = value.partition(" #")[0].strip()
        yield match["name"], value


def _parse_yaml(text: str, name: str, settings: HermesSettings) -> dict[str, Any]:
    import yaml

    try:
        return as_dict(yaml.safe_load(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}, line {mark.line + 1}" if mark else name
        settings.problems.append(ImportProblem(where=where, what="This is not valid YAML; its settings are left out."))
        return {}


def _parse_json(text: str, name: str, settings: HermesSettings) -> dict[str, Any]:
    try:
        return as_dict(json.loads(text))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        settings.problems.append(
            ImportProblem(where=f"{name}, line {line}", what="This is not valid JSON; its settings are left out.")
        )
        return {}


def _apply_document(settings: HermesSettings, document: dict[str, Any]) -> None:
    gateway = as_dict(document.get("gateway"))
    merged = {**gateway, **document}
    settings.timezone = settings.timezone or as_text(merged.get("timezone")).strip()
    if isinstance(value := merged.get("group_sessions_per_user"), bool):
        settings.group_sessions_per_user = value
    if isinstance(value := merged.get("thread_sessions_per_user"), bool):
        settings.thread_sessions_per_user = value
    for platform, section in as_dict(merged.get("platforms")).items():
        if isinstance(platform, str):
            _apply_platform(settings, platform.lower(), as_dict(section))


def _apply_platform(settings: HermesSettings, platform: str, section: dict[str, Any]) -> None:
    extra = {**as_dict(section.get("extra")), **section}
    home = as_dict(section.get("home_channel"))
    if (chat_id := as_id(home.get("chat_id"))) and platform not in settings.homes:
        settings.homes[platform] = HomeChat(platform, chat_id, as_text(home.get("name")), as_id(home.get("thread_id")))
    for key, is_admin in (("allow_from", False), ("allow_admin_from", True), ("group_allow_admin_from", True)):
        settings.allowed += [
            ImportedAccount(platform=platform, user_id=user, is_owner=is_admin) for user in _read_users(extra.get(key))
        ]


def _read_users(value: object) -> Iterable[str]:
    return _split(value) if isinstance(value, str) else [user for item in as_list(value) if (user := as_id(item))]


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


# ---- the folder ----------------------------------------------------------------------------------------------------


class HermesHome:
    def __init__(self, folder: Path, root: Path, profile: str) -> None:
        self.folder = folder
        self.root = root  # the folder of the import
        self.profile = profile
        self.settings = read_settings(folder, self.make_name)
        self.problems = problems = self.settings.problems
        self.zone = _load_zone(self.settings, problems)  # None: of this machine
        database_path, sessions = folder / "state.db", folder / "sessions"
        self.database = _open_database(database_path, self.make_name(database_path), self.zone, problems)
        self.transcripts = _list_files(sessions, ".jsonl")
        self.snapshots = {
            name.removeprefix("session_"): path
            for name, path in _list_files(sessions, ".json").items()
            if name.startswith("session_")
        }
        self.pages = _list_files(folder / "webui" / "sessions", ".json")
        self.lineage = _read_lineage(self.database, frozenset(self.pages), problems)
        self.projects = read_projects(folder / "webui" / "projects.json", self.make_name, problems)
        self.routes = read_routes(self.database, sessions / "sessions.json", self.make_name, problems)
        # The chats of sessions that a route names.
        self.origins = {route.session_id: route.origin for route in self.routes.values()}
        # The conversations that chats are on, by their first session.
        self.current = find_current(self.lineage, self.routes)
        if self.lineage.delegate_count:
            what = f"Sub-agent sessions are left out, as in Hermes' own lists: {self.lineage.delegate_count}."
            problems.append(ImportProblem(where=self.make_name(database_path), what=what))

    def make_name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def make_origin_id(self, session_id: str) -> str:
        return f"{self.profile}/{session_id}" if self.profile else session_id

    def list_chains(self) -> list[Chain]:
        """Return all conversations: those of the database, and those that are only in files."""
        known = self.lineage.links
        only_files = {*self.transcripts, *self.snapshots, *self.pages} - known.keys()
        return [*self.lineage.chains, *(Chain([each], self._find_start(each)) for each in sorted(only_files))]

    def list_chats(self) -> dict[tuple[str, str], SessionSource]:
        """Return the chats of the routes, by platform and id, and threads by their own ids."""
        chats: dict[tuple[str, str], SessionSource] = {}
        for route in self.routes.values():
            with suppress(InvalidSource):
                if source := convert_origin(route.origin):
                    chats.setdefault((str(source.platform), source.chat_id), source)
                    if source.thread_id == as_id(route.origin.get("chat_id")):
                        chats[str(source.platform), source.thread_id] = source
        return chats

    def _find_start(self, session_id: str) -> float:
        """Return when a conversation began that the database does not know."""
        if page := self.pages.get(session_id):
            with suppress(UnreadableObject, OSError):
                for key, value in read_members(page, ("messages",)):
                    if key == "created_at" and (seconds := read_seconds(value, self.zone)):
                        return seconds
                    if key == "messages":
                        break
        if (dated := _DATED_ID.match(session_id)) and (
            seconds := read_seconds(_format_date(dated[1], dated[2]), self.zone)
        ):
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


def _load_zone(settings: HermesSettings, problems: list[ImportProblem]) -> tzinfo | None:
    if not settings.timezone:
        return None
    try:
        return load_zone(settings.timezone)
    except InvalidInput:
        what = f"{settings.timezone!r} is not a time zone; the one of this machine is used."
        problems.append(ImportProblem(where="timezone", what=what))
        settings.timezone = ""
        return None


def _open_database(path: Path, name: str, zone: tzinfo | None, problems: list[ImportProblem]) -> StateDatabase | None:
    if not path.exists():
        return None
    if not is_plain(path):
        problems.append(ImportProblem(where=name, what="The file cannot be read: it is a link."))
        return None
    try:
        return open_state_database(path, name, zone)
    except InvalidForeignDatabase as error:
        problems.append(ImportProblem(where=name, what=str(error)))
        return None


def _read_lineage(database: StateDatabase | None, page_ids: frozenset[str], problems: list[ImportProblem]) -> Lineage:
    rows: list[dict[str, Any]] = []
    if database is not None:
        try:
            rows.extend(database.list_links())
        except InvalidForeignDatabase as error:
            problems.append(ImportProblem(where=database.name, what=str(error)))
    return read_lineage(rows, page_ids)


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


def _format_date(date: str, time: str) -> str:
    return f"{date[:4]}-{date[4:6]}-{date[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}"


# ---- people and home channels --------------------------------------------------------------------------------------
#
# People who were allowed to talk to Hermes, and its home channels.


def read_accounts(
    folder: Path, make_name: Callable[[Path], str], settings: HermesSettings, names: Mapping[tuple[str, str], str]
) -> Iterator[ImportedAccount | ImportProblem]:
    """Read allow-lists and pairings; each person on a platform comes once."""
    accounts: dict[tuple[str, str], ImportedAccount] = {}
    problems: list[ImportProblem] = []
    for account in settings.allowed:
        _add_account(accounts, problems, account)
    for path in _list_pairings(folder):
        platform = path.name.removesuffix("-approved.json")
        for user_id, details in as_dict(read_json_file(path, make_name(path), problems, "Pairings")).items():
            name = as_text(as_dict(details).get("user_name"))
            _add_account(accounts, problems, ImportedAccount(platform=platform, user_id=user_id, name=name))
    for account in accounts.values():
        yield account if account.name else replace(account, name=names.get((account.platform, account.user_id), ""))
    yield from dict.fromkeys(problems)


def _list_pairings(folder: Path) -> Iterable[Path]:
    for place in (folder / "pairing", folder / "platforms" / "pairing"):
        yield from sorted(place.glob("*-approved.json"))


def _add_account(
    accounts: dict[tuple[str, str], ImportedAccount], problems: list[ImportProblem], account: ImportedAccount
) -> None:
    if account.user_id == "*":
        place = f"on {account.platform}" if account.platform else "on every platform"
        what = (
            f"Everyone was allowed {place}. That is not imported: set who may talk to the agent in the server settings."
        )
        problems.append(ImportProblem(where="allow-list", what=what))
        return
    if not account.platform:
        what = f"{account.user_id} names no platform, so the person is left out."
        problems.append(ImportProblem(where="GATEWAY_ALLOWED_USERS", what=what))
        return
    try:
        platform = convert_platform(account.platform)
    except InvalidSource as error:
        problems.append(ImportProblem(where="allow-list", what=str(error)))
        return
    key = (str(platform), convert_chat_id(platform, account.user_id))
    known = accounts.get(key, ImportedAccount(platform=key[0], user_id=key[1]))
    accounts[key] = replace(known, name=known.name or account.name, is_owner=known.is_owner or account.is_owner)


def read_home_channels(
    settings: HermesSettings, chats: Mapping[tuple[str, str], SessionSource]
) -> Iterator[ImportedHomeChannel | ImportProblem]:
    """Read the home channel of each platform, as the chat that is known from conversations, if it is."""
    for home in settings.homes.values():
        try:
            yield ImportedHomeChannel(source=_build_home(home, chats))
        except InvalidSource as error:
            yield ImportProblem(where=f"home channel of {home.platform}", what=str(error))


def _build_home(home: HomeChat, chats: Mapping[tuple[str, str], SessionSource]) -> SessionSource:
    platform = convert_platform(home.platform)
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
