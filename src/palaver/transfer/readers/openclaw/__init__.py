"""Reads the state folder of OpenClaw (`~/.openclaw`): conversations, jobs, allowed people and memories."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.foreign_sqlite import ForeignDatabase, InvalidForeignDatabase, open_foreign_database
from palaver.core.source import ChatType, Platform
from palaver.transfer.imported import (
    ImportedAccount,
    ImportedConversation,
    ImportedItem,
    ImportProblem,
    InvalidImport,
)
from palaver.transfer.reader_kit.export_files import DamagedFile, UnreadableItem, parse_json
from palaver.transfer.reader_kit.values import (
    UNKNOWN_TIME,
    as_dict,
    as_id,
    as_list,
    as_text,
    format_count,
    is_plain,
    read_json_file,
    read_time,
    read_title,
)
from palaver.transfer.readers.openclaw.state import find_source, is_internal, read_state
from palaver.transfer.readers.openclaw.transcript import (
    FileTranscript,
    StoredTranscript,
    Transcript,
    build_usage,
    read_entries,
    read_outline,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from palaver.core.source import SessionSource


HOW_TO_GET: Final = (
    "Import OpenClaw's state folder, ~/.openclaw unless OPENCLAW_STATE_DIR names another one, or a copy of it from the"
    " machine that OpenClaw runs on."
)
_MAIN_AGENT: Final = "main"
_MAX_INDEX_BYTES: Final = 64_000_000
_MAX_HEADER_LINES: Final = 20  # among which is the time when a transcript began
_TRANSCRIPT = re.compile(r"([\w-]{1,100}?)(?:-topic-[\w-]{1,40})?\.jsonl(?:\.reset\.[\w.:-]{1,60})?")
_LIST_SESSIONS: Final = (
    "SELECT session_id, min(created_at) AS started FROM transcript_events GROUP BY session_id ORDER BY 2, 1"
)


def open_reader(path: Path) -> OpenClawReader:
    """Open the state folder; raise InvalidImport if it is none."""
    folder = path / ".openclaw" if (path / ".openclaw" / "agents").is_dir() else path
    folder = folder.resolve()
    try:
        agents = sorted(each for each in (folder / "agents").iterdir() if each.is_dir() and not each.is_symlink())
    except OSError:
        agents = []
    if not agents:
        raise InvalidImport(f"{path} has no folder `agents` with OpenClaw's sessions. {HOW_TO_GET}", path=str(path))
    return OpenClawReader(folder, [AgentSessions(each, f"agents/{each.name}") for each in agents])


class OpenClawReader:
    format = "openclaw"
    platform = Platform("openclaw")

    def __init__(self, folder: Path, agents: list[AgentSessions]) -> None:
        self._folder = folder
        self._agents = agents

    def count_conversations(self) -> int:
        return len(self._sessions)

    def list_chats(self) -> Iterator[SessionSource | ImportedAccount]:
        yield from (item for item in read_state(self._folder) if isinstance(item, ImportedAccount))
        for session in self._sessions:
            if session.key and (source := find_source(session.key, session.entry)):
                yield source

    def read_items(self) -> Iterator[ImportedItem]:
        sessions = self._sessions
        for agent in self._agents:
            yield from agent.problems
        yield from read_state(self._folder)
        for session in sessions:
            try:
                if conversation := _describe(session):
                    yield conversation
            except DamagedFile as error:
                yield ImportProblem(where=session.transcript.name, what=str(error))

    def close(self) -> None:
        for agent in self._agents:
            agent.close()

    @cached_property
    def _sessions(self) -> list[StoredSession]:
        for agent in self._agents:
            agent.find()
        found = [session for agent in self._agents for session in agent.sessions]
        return sorted(found, key=lambda each: (each.created_at, each.agent, each.session_id))


def _describe(session: StoredSession) -> ImportedConversation | None:
    """Describe a session; None if no message was ever written in it."""
    outline = read_outline(session.transcript)
    if not outline.message_count and not outline.problems:
        return None
    entry = session.entry
    source = find_source(session.key, entry) if session.key else None
    is_group = source is not None and source.chat_type is not ChatType.DM
    model = as_text(entry.get("modelOverride")) or as_text(entry.get("model"))
    return ImportedConversation(
        origin_id=f"{session.agent}/{session.session_id}",
        open_entries=lambda: read_entries(session.transcript, session.created_at, is_group=is_group),
        created_at=session.created_at,
        source=source,
        title=read_title(entry.get("label")) or read_title(outline.title),
        active_at=outline.last_at,
        is_current=session.is_current and source is not None and bool(source.chat_id),
        pinned=session.is_current and read_time(entry.get("pinnedAt")) is not None,
        archived=session.is_current and read_time(entry.get("archivedAt")) is not None,
        model=model or next((name for _, name in reversed(outline.usage) if name), None),
        provider=as_text(entry.get("providerOverride")) or as_text(entry.get("modelProvider")) or None,
        profile=session.agent if session.agent != _MAIN_AGENT else None,
        usage=build_usage(outline, f"{session.agent}/{session.session_id}"),
    )


@dataclass(frozen=True, slots=True)
class StoredSession:
    agent: str
    session_id: str
    key: str  # empty: not known any more
    entry: dict[str, Any]  # what the index says about its key
    transcript: Transcript
    created_at: datetime
    is_current: bool


@dataclass(slots=True)
class AgentSessions:
    folder: Path  # has the name of the agent
    label: str  # the folder, for people
    sessions: list[StoredSession] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)
    internal_count: int = 0  # conversations of the agent with itself, which are left out
    database: ForeignDatabase | None = None

    def find(self) -> None:
        """Find all sessions; those in the database win over older files of the same sessions."""
        self._find_stored()
        self._find_files()
        if self.internal_count:
            what = f"Left out: {format_count(self.internal_count, 'conversation')} of jobs, sub-agents and hooks."
            self.problems.append(ImportProblem(where=self.label, what=what))

    def close(self) -> None:
        if self.database is not None:
            self.database.close()

    def _find_stored(self) -> None:
        path = self.folder / "agent" / "openclaw-agent.sqlite"
        if not path.is_file() or not is_plain(path):
            return
        where = f"{self.label}/agent/{path.name}"
        try:
            self.database = open_foreign_database(path)
            entries, keys = _read_nodes(self.database)
            has_transcripts = self.database.has_table("transcript_events")
            for row in self.database.query(_LIST_SESSIONS) if has_transcripts else ():
                session_id = as_id(row["session_id"])
                key = keys.get(session_id, "")
                self._add(session_id, key, entries, StoredTranscript(where, self.database, session_id), row["started"])
            kept = "WHERE reason <> 'deleted'"
            if count := len(list(self.database.select("session_transcript_archives", ("reason",), kept))):
                what = f"Not imported: {format_count(count, 'archived conversation')}, which OpenClaw has compressed."
                self.problems.append(ImportProblem(where=where, what=what))
        except (InvalidForeignDatabase, UnreadableItem) as error:
            self.problems.append(ImportProblem(where=where, what=str(error)))

    def _find_files(self) -> None:
        folder = self.folder / "sessions"
        index_path = folder / "sessions.json"
        index = as_dict(read_json_file(index_path, index_path.name, self.problems, max_bytes=_MAX_INDEX_BYTES))
        entries = {key: as_dict(entry) for key, entry in index.items()}
        keys: dict[str, str] = {}
        for key, entry in entries.items():
            for earlier in as_list(entry.get("usageFamilySessionIds")):
                keys.setdefault(as_id(earlier), key)
        keys |= {as_id(entry.get("sessionId")): key for key, entry in entries.items()}
        known = {session.session_id for session in self.sessions}
        for path in sorted(folder.glob("*.jsonl*")):
            found = _TRANSCRIPT.fullmatch(path.name)
            if found is None or not is_plain(path) or not path.is_file() or found[1] in known:
                continue
            transcript = FileTranscript(f"{self.label}/sessions/{path.name}", path)
            # The transcript before a reset has the same id; its name makes it a session of its own.
            is_reset = ".jsonl.reset." in path.name
            session_id = path.name.replace(".jsonl.reset.", "-reset-") if is_reset else found[1]
            if not is_reset:
                known.add(session_id)
            try:
                started = _read_start(transcript)
            except DamagedFile as error:
                self.problems.append(ImportProblem(where=transcript.name, what=str(error)))
                continue
            self._add(session_id, keys.get(found[1], ""), entries, transcript, started)

    def _add(
        self, session_id: str, key: str, entries: dict[str, dict[str, Any]], transcript: Transcript, started: object
    ) -> None:
        if key and is_internal(key):
            self.internal_count += 1
            return
        entry = entries.get(key, {})
        is_current = as_id(entry.get("sessionId")) == session_id
        created_at = read_time(entry.get("sessionStartedAt")) if is_current else None
        started_at = read_time(started) or created_at or UNKNOWN_TIME
        self.sessions.append(
            StoredSession(self.folder.name, session_id, key, entry, transcript, started_at, is_current)
        )


def _read_nodes(database: ForeignDatabase) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return what the database says about each key, and the key of each session."""
    entries: dict[str, dict[str, Any]] = {}
    keys: dict[str, str] = {}
    for row in database.select("session_windows", ("session_id", "session_key")):
        keys[as_id(row["session_id"])] = as_text(row["session_key"])
    for table in ("session_nodes", "session_entries"):  # the second in the first versions
        for row in database.select(table, ("session_key", "current_session_id", "session_id", "entry_json")):
            key = as_text(row["session_key"])
            entry = as_dict(parse_json(row["entry_json"] or "{}"))
            session_id = as_id(row["current_session_id"] or row["session_id"] or entry.get("sessionId"))
            entries[key] = {**entry, "sessionId": session_id}
            keys.setdefault(session_id, key)
    return entries, keys


def _read_start(transcript: Transcript) -> object:
    """Return the first time in a transcript; it is in one of the first lines."""
    for _, line in islice(transcript.read_lines(), _MAX_HEADER_LINES):
        with suppress(UnreadableItem):
            entry = as_dict(parse_json(line or ""))
            if read_time(entry.get("timestamp")):
                return entry["timestamp"]
    return None
