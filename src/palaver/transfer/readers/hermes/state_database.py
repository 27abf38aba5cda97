"""Hermes' `state.db`, in every version of its schema: what is read is what the file has, whatever its version says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from palaver.core.foreign_sqlite import ForeignDatabase, InvalidForeignDatabase, open_foreign_database
from palaver.transfer.imported import ImportProblem
from palaver.transfer.reader_kit.values import as_count, as_dict, as_id, as_text, read_json_file
from palaver.transfer.readers.hermes.records import Record, is_review_request, read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import tzinfo
    from pathlib import Path


_JSON_CONTENT: Final = "\x00json:"  # stands before content that is a list
_LINK_COLUMNS: Final = (
    "id", "source", "parent_session_id", "model_config", "started_at", "ended_at", "end_reason", "session_key",
    "message_count",
)  # fmt: skip
_SESSION_COLUMNS: Final = (
    "id", "source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json",
    "model", "model_config", "parent_session_id", "started_at", "ended_at", "end_reason", "message_count",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cwd",
    "billing_provider", "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source", "title",
    "profile_name", "archived",
)  # fmt: skip
_MESSAGE_COLUMNS: Final = (
    "id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "reasoning",
    "reasoning_content", "platform_message_id", "active", "compacted",
)  # fmt: skip
_USAGE_COLUMNS: Final = (
    "model", "billing_provider", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source",
)  # fmt: skip

ACCIDENTAL_ENDS: Final = frozenset({"agent_close", "ws_orphan_reap"})  # Hermes goes on with such a session
_AGENT_SOURCES: Final = frozenset({"tool", "subagent"})


class StateDatabase:
    def __init__(self, database: ForeignDatabase, name: str, zone: tzinfo | None) -> None:
        self._database = database
        self.name = name  # as reports name it: relative to the folder of the import
        self._zone = zone

    def close(self) -> None:
        self._database.close()

    def list_links(self) -> Iterator[dict[str, Any]]:
        """Read how all sessions belong together; the oldest first."""
        return self._database.select("sessions", _LINK_COLUMNS, "ORDER BY started_at, id")

    def read_session(self, session_id: str) -> dict[str, Any]:
        rows = self._database.select("sessions", _SESSION_COLUMNS, "WHERE id = ?", (session_id,))
        return next(rows, dict.fromkeys(_SESSION_COLUMNS))

    def read_usage(self, session_id: str) -> list[dict[str, Any]]:
        return list(self._database.select("session_model_usage", _USAGE_COLUMNS, "WHERE session_id = ?", (session_id,)))

    def read_routes(self) -> Iterator[dict[str, Any]]:
        """Read which chat is on which session; the newest last."""
        return self._database.select(
            "gateway_routing", ("session_key", "entry_json", "updated_at"), "ORDER BY updated_at"
        )

    def open_records(self, session_id: str) -> Iterator[Record | ImportProblem]:
        """Read the messages of a session in the order in which they were stored."""
        is_reviewed = False  # the answer to a review in the background follows
        try:
            for row in self._database.select(
                "messages", _MESSAGE_COLUMNS, "WHERE session_id = ? ORDER BY id", (session_id,)
            ):
                where = f"{self.name}, message {row['id']}"
                record = read_record(_decode_row(row), where, self._zone)
                if record is None or isinstance(record, ImportProblem):
                    if record is not None:
                        yield record
                    continue
                if is_review_request(record.role, record.text):
                    is_reviewed = True
                    continue
                if is_reviewed:
                    is_reviewed = False
                    if record.role == "assistant":
                        continue
                record.is_undone = row["active"] == 0 and not row["compacted"]
                yield record
        except InvalidForeignDatabase as error:
            yield ImportProblem(where=f"{self.name}, session {session_id}", what=str(error))


def open_state_database(path: Path, name: str, zone: tzinfo | None) -> StateDatabase:
    """Open `state.db`; raise InvalidForeignDatabase if it cannot be read or has no sessions."""
    database = open_foreign_database(path)
    try:
        if not database.has_table("sessions") or not database.has_table("messages"):
            raise InvalidForeignDatabase(f"{path}: this is not a database of Hermes.", path=str(path))
    except InvalidForeignDatabase:
        database.close()
        raise
    return StateDatabase(database, name, zone)


def _decode_row(row: dict[str, Any]) -> dict[str, Any]:
    content = row["content"]
    if isinstance(content, str) and content.startswith(_JSON_CONTENT):
        row["content"] = parse_stored_json(content[len(_JSON_CONTENT) :], content)
    row["tool_calls"] = parse_stored_json(row["tool_calls"], [])
    return row


def parse_stored_json(text: object, default: Any) -> Any:
    """Parse JSON in a column; the default if it is empty or damaged."""
    try:
        return json.loads(as_text(text)) if text else default
    except (ValueError, RecursionError):
        return default


# ---- lineage -------------------------------------------------------------------------------------------------------
#
# Which sessions of Hermes are one conversation: it started a new session for each compaction.


@dataclass(slots=True)
class SessionLink:
    id: str
    source: str
    parent_id: str
    started_at: float
    end_reason: str
    session_key: str
    message_count: int
    is_branch: bool
    is_delegate: bool

    @property
    def is_open(self) -> bool:
        return not self.end_reason or self.end_reason in ACCIDENTAL_ENDS


@dataclass(slots=True)
class Chain:
    """The sessions of one conversation, the oldest first."""

    session_ids: list[str]
    started_at: float
    parent_id: str = ""  # the session from which it was branched


@dataclass(slots=True)
class Lineage:
    chains: list[Chain] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)  # the first session of the chain of a session
    links: dict[str, SessionLink] = field(default_factory=dict)
    delegate_count: int = 0  # sessions of sub-agents

    def find_open_sessions(self) -> dict[str, str]:
        """Return the last session of each chat that has not ended, by session key."""
        newest: dict[str, SessionLink] = {}
        for link in self.links.values():
            if not (link.session_key and link.is_open and link.message_count) or link.is_delegate:
                continue
            known = newest.get(link.session_key)
            if known is None or link.started_at >= known.started_at:
                newest[link.session_key] = link
        return {key: link.id for key, link in newest.items()}


def read_lineage(rows: Iterable[dict[str, Any]], page_ids: frozenset[str] = frozenset()) -> Lineage:
    """Group sessions into chains. What is in `page_ids` has a file of the web page, and is a conversation for sure."""
    lineage = Lineage(links={link.id: link for row in rows if (link := _read_link(row)).id})
    children = _find_children(lineage, page_ids)
    continued = {parent: _choose_child(candidates) for parent, candidates in children.items()}
    continuations = set(continued.values())
    for link in lineage.links.values():
        if link.is_delegate:
            lineage.delegate_count += 1
        elif link.id not in continuations:
            _add_chain(lineage, link, continued)
    for link in lineage.links.values():
        if not link.is_delegate and link.id not in lineage.roots:  # sessions that continue each other in a circle
            _add_chain(lineage, link, {})
    return lineage


def _read_link(row: dict[str, Any]) -> SessionLink:
    config = as_dict(parse_stored_json(row["model_config"], {}))
    source = as_text(row["source"])
    started_at = row["started_at"]
    return SessionLink(
        id=as_id(row["id"]),
        source=source,
        parent_id=as_id(row["parent_session_id"]),
        started_at=float(started_at) if isinstance(started_at, int | float) else 0.0,
        end_reason=as_text(row["end_reason"]),
        session_key=as_text(row["session_key"]),
        message_count=as_count(row["message_count"]),
        is_branch=config.get("_branched_from") is not None,
        is_delegate=config.get("_delegate_from") is not None or source in _AGENT_SOURCES,
    )


def _find_children(lineage: Lineage, page_ids: frozenset[str]) -> dict[str, list[SessionLink]]:
    """Return the sessions that may continue each compacted session; mark branches and sub-agents."""
    children: dict[str, list[SessionLink]] = {}
    for link in lineage.links.values():
        parent = lineage.links.get(link.parent_id)
        if parent is None or parent is link or link.is_branch or link.is_delegate:
            continue
        if parent.end_reason == "compression":
            children.setdefault(parent.id, []).append(link)
        elif parent.end_reason == "branched" or link.id in page_ids:
            link.is_branch = True
        else:
            link.is_delegate = True
    return children


def _choose_child(candidates: list[SessionLink]) -> str:
    """Choose as Hermes does: the session that was compacted again, else one that is open, else the newest."""
    best = max(
        candidates,
        key=lambda link: (link.end_reason == "compression", not link.end_reason, link.started_at, link.id),
    )
    return best.id


def _add_chain(lineage: Lineage, first: SessionLink, continued: dict[str, str]) -> None:
    chain = Chain([first.id], first.started_at, first.parent_id)
    seen = {first.id}
    current = first.id
    while (current := continued.get(current, "")) and current not in seen:
        seen.add(current)
        chain.session_ids.append(current)
    for session_id in chain.session_ids:
        lineage.roots[session_id] = first.id
    lineage.chains.append(chain)


# ---- routes --------------------------------------------------------------------------------------------------------
#
# Which chat is on which session: the table `gateway_routing`, and `sessions.json` for chats that are not in it.


@dataclass(frozen=True, slots=True)
class Route:
    session_key: str
    session_id: str
    origin: dict[str, Any]
    created_at: object
    is_suspended: bool  # the next message would start a new session
    model: str
    provider: str
    last_prompt_tokens: int


def read_routes(
    database: StateDatabase | None, path: Path, make_name: Callable[[Path], str], problems: list[ImportProblem]
) -> dict[str, Route]:
    """Read all routes by session key; like Hermes, the database wins."""
    routes: dict[str, Route] = {}
    name = make_name(path)
    for key, entry in as_dict(read_json_file(path, name, problems, "Chats and their sessions")).items():
        if not key.startswith("_"):
            _add_route(routes, problems, key, entry, name)
    if database is not None:
        try:
            for row in database.read_routes():
                key = as_text(row["session_key"])
                _add_route(routes, problems, key, parse_stored_json(row["entry_json"], None), database.name)
        except InvalidForeignDatabase as error:
            problems.append(ImportProblem(where=database.name, what=str(error)))
    return routes


def _add_route(routes: dict[str, Route], problems: list[ImportProblem], key: str, entry: object, where: str) -> None:
    data = as_dict(entry)
    session_id = as_id(data.get("session_id"))
    if not session_id:
        problems.append(ImportProblem(where=f"{where}, {key}", what="The entry names no session."))
        return
    override = as_dict(data.get("model_override"))
    routes[key] = Route(
        session_key=key,
        session_id=session_id,
        origin=as_dict(data.get("origin")),
        created_at=data.get("created_at"),
        is_suspended=bool(data.get("suspended")),
        model=as_text(override.get("model")),
        provider=as_text(override.get("provider")),
        last_prompt_tokens=as_count(data.get("last_prompt_tokens")),
    )
