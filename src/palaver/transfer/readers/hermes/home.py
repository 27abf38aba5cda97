"""The conversations in a folder of Hermes, where each is stored, who was allowed to talk to it, and home channels."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from palaver.core.errors import InvalidSource
from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.transfer.imported import ImportedAccount, ImportedHomeChannel
from palaver.transfer.reader_kit.export_files import UnreadableItem
from palaver.transfer.reader_kit.values import as_dict, as_id, as_text, is_plain
from palaver.transfer.readers.hermes.folder import HermesFolder
from palaver.transfer.readers.hermes.records import read_seconds
from palaver.transfer.readers.hermes.state_database import (
    Chain,
    Lineage,
    Route,
    StateDatabase,
    convert_chat_id,
    convert_origin,
    convert_platform,
    read_lineage,
    read_routes,
)
from palaver.transfer.readers.hermes.transcripts import read_members, read_projects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.transfer.readers.hermes.folder import HomeChat


_DATED_ID = re.compile(r"(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)")


class HermesHome(HermesFolder):
    def __init__(self, path: Path, root: Path, profile: str) -> None:
        super().__init__(path, root, profile)
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
        self.projects = read_projects(self)
        self.routes = read_routes(self, self.database)
        # The chats of sessions that a route names.
        self.origins = {route.session_id: route.origin for route in self.routes.values()}
        # The conversations that chats are on, by their first session.
        self.current = find_current(self.lineage, self.routes)
        if self.lineage.delegate_count:
            what = f"Sub-agent sessions are left out, as in Hermes' own lists: {self.lineage.delegate_count}."
            self.report(path / "state.db", what)

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


def _open_database(folder: HermesFolder) -> StateDatabase | None:
    path = folder.path / "state.db"
    if not path.exists():
        return None
    if not is_plain(path):
        folder.report(path, "The file cannot be read: it is a link.")
        return None
    try:
        return StateDatabase(path, folder.make_name(path), folder.zone)
    except InvalidForeignDatabase as error:
        folder.report(path, error)
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


def _add_account(
    folder: HermesFolder, accounts: dict[tuple[str, str], ImportedAccount], account: ImportedAccount
) -> None:
    if account.user_id == "*":
        place = f"on {account.platform}" if account.platform else "on every platform"
        what = (
            f"Everyone was allowed {place}. That is not imported: set who may talk to the agent in the server settings."
        )
        folder.report("allow-list", what)
        return
    if not account.platform:
        folder.report("GATEWAY_ALLOWED_USERS", f"{account.user_id} names no platform, so the person is left out.")
        return
    try:
        platform = convert_platform(account.platform)
    except InvalidSource as error:
        folder.report("allow-list", error)
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
