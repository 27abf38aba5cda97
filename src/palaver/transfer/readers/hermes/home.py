"""The folder of Hermes, or of one of its profiles: which conversations are in it, and where each is stored."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from palaver.core.errors import InvalidInput, InvalidSource
from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.jobs.schedule import load_zone
from palaver.transfer.imported import ImportProblem
from palaver.transfer.readers.hermes.json_object import UnreadableObject, read_members
from palaver.transfer.readers.hermes.lineage import Chain, Lineage, read_lineage
from palaver.transfer.readers.hermes.records import read_seconds
from palaver.transfer.readers.hermes.routing import Route, read_routes
from palaver.transfer.readers.hermes.settings_files import HermesSettings, read_settings
from palaver.transfer.readers.hermes.sources import convert_origin
from palaver.transfer.readers.hermes.state_database import StateDatabase, open_state_database
from palaver.transfer.readers.hermes.webui_sessions import read_projects
from palaver.transfer.readers.plain_file import is_plain
from palaver.transfer.readers.values import as_id

if TYPE_CHECKING:
    from datetime import tzinfo
    from pathlib import Path

    from palaver.core.source import SessionSource
    from palaver.transfer.imported import ImportedProject

_DATED_ID = re.compile(r"(\d{8})_(\d{6})")


@dataclass(slots=True)
class HermesHome:
    folder: Path
    root: Path  # the folder of the import
    profile: str
    settings: HermesSettings
    zone: tzinfo | None  # None: of this machine
    database: StateDatabase | None
    transcripts: dict[str, Path]
    snapshots: dict[str, Path]
    pages: dict[str, Path]
    projects: dict[str, ImportedProject]
    lineage: Lineage
    routes: dict[str, Route]
    origins: dict[str, dict[str, Any]]  # the chats of sessions that a route names
    current: dict[str, Route | None]  # the conversations that chats are on, by their first session
    problems: list[ImportProblem] = field(default_factory=list)

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


def open_home(folder: Path, root: Path, profile: str) -> HermesHome:
    def make_name(path: Path) -> str:
        return path.relative_to(root).as_posix()

    settings = read_settings(folder, make_name)
    problems = settings.problems
    zone = _load_zone(settings, problems)
    database = _open_database(folder / "state.db", make_name(folder / "state.db"), zone, problems)
    sessions = folder / "sessions"
    pages = _list_files(folder / "webui" / "sessions", ".json")
    projects, project_problems = read_projects(
        folder / "webui" / "projects.json", make_name(folder / "webui" / "projects.json")
    )
    lineage = _read_lineage(database, frozenset(pages), problems)
    routes, route_problems = read_routes(database, sessions / "sessions.json", make_name(sessions / "sessions.json"))
    problems += [*project_problems, *route_problems]
    if lineage.delegate_count:
        what = f"Sub-agent sessions are left out, as in Hermes' own lists: {lineage.delegate_count}."
        problems.append(ImportProblem(where=make_name(folder / "state.db"), what=what))
    return HermesHome(
        folder=folder,
        root=root,
        profile=profile,
        settings=settings,
        zone=zone,
        database=database,
        transcripts=_list_files(sessions, ".jsonl"),
        snapshots={
            name.removeprefix("session_"): path
            for name, path in _list_files(sessions, ".json").items()
            if name.startswith("session_")
        },
        pages=pages,
        projects=projects,
        lineage=lineage,
        routes=routes,
        origins={route.session_id: route.origin for route in routes.values()},
        current=find_current(lineage, routes),
        problems=problems,
    )


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
