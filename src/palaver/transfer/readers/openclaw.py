"""Reads the state folder of OpenClaw (`~/.openclaw`): conversations, jobs, allowed people and memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.source import ChatType, Platform
from palaver.transfer.imported import ImportedConversation, ImportProblem, InvalidImport
from palaver.transfer.readers.archive import DamagedFile
from palaver.transfer.readers.openclaw_sessions import AgentSessions
from palaver.transfer.readers.openclaw_source import find_source
from palaver.transfer.readers.openclaw_state import read_state
from palaver.transfer.readers.openclaw_transcript import build_usage, read_entries, read_outline
from palaver.transfer.readers.values import as_text, read_time, read_title

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.transfer.imported import ImportedItem
    from palaver.transfer.readers.openclaw_sessions import StoredSession

HOW_TO_GET: Final = (
    "Import OpenClaw's state folder, ~/.openclaw unless OPENCLAW_STATE_DIR names another one, or a copy of it from the"
    " machine that OpenClaw runs on."
)
_MAIN_AGENT: Final = "main"


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
    return OpenClawReader(folder, [AgentSessions(each.name, each, f"agents/{each.name}") for each in agents])


class OpenClawReader:
    format = "openclaw"
    platform = Platform("openclaw")

    def __init__(self, folder: Path, agents: list[AgentSessions]) -> None:
        self._folder = folder
        self._agents = agents
        self._sessions: list[StoredSession] | None = None

    def count_conversations(self) -> int:
        return len(self._find_sessions())

    def read_items(self) -> Iterator[ImportedItem]:
        sessions = self._find_sessions()
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

    def _find_sessions(self) -> list[StoredSession]:
        if self._sessions is None:
            for agent in self._agents:
                agent.find()
            found = [session for agent in self._agents for session in agent.sessions]
            self._sessions = sorted(found, key=lambda each: (each.created_at, each.agent, each.session_id))
        return self._sessions


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
