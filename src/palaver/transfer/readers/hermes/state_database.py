"""Hermes' `state.db`, in every version of its schema: what is read is what the file has, whatever its version says."""

from __future__ import annotations

import json
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidSource
from palaver.core.foreign_sqlite import InvalidForeignDatabase, open_foreign_database
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.transfer.imported import ImportProblem
from palaver.transfer.reader_kit.export_files import close_on_error
from palaver.transfer.reader_kit.values import as_count, as_dict, as_id, as_text
from palaver.transfer.readers.hermes.records import Record, is_review_request, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
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

# Sessions from these belong to the person who imports them: they name no chat on a platform.
OWN_SOURCES: Final = frozenset(
    {"", "cli", "tui", "local", "webui", "desktop", "acp", "cron", "api_server", "tool", "unknown", "bg", "subagent"}
)
_PLATFORM_NAMES: Final = {"whatsapp": Platform.WHATSAPP_WEB, "whatsapp_cloud": Platform.WHATSAPP}
_PHONE_SERVER: Final = "@s.whatsapp.net"
_CHAT_OF_USER: Final = frozenset({Platform.TELEGRAM, Platform.WHATSAPP, Platform.WHATSAPP_WEB, Platform.SIGNAL})


class StateDatabase:
    def __init__(self, path: Path, name: str, zone: tzinfo | None) -> None:
        """Open `state.db`; raise InvalidForeignDatabase if it cannot be read or has no sessions."""
        self._database = open_foreign_database(path)
        with close_on_error(self._database):
            if not self._database.has_table("sessions") or not self._database.has_table("messages"):
                raise InvalidForeignDatabase(f"{path}: this is not a database of Hermes.", path=str(path))
        self.name = name  # as reports name it: relative to the folder of the import
        self._zone = zone

    def close(self) -> None:
        self._database.close()

    def read_schema_version(self) -> int:
        """Return the version of the schema, which says which version of Hermes used the file last; 0: unknown."""
        row = next(self._database.select("schema_version", ("version",), ""), {})
        return as_count(row.get("version"))

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
        columns = ("session_key", "entry_json", "updated_at")
        return self._database.select("gateway_routing", columns, "ORDER BY updated_at")

    def open_records(self, session_id: str) -> Iterator[Record | ImportProblem]:
        """Read the messages of a session in the order in which they were stored."""
        is_reviewed = False  # the answer to a review in the background follows
        try:
            order = "WHERE session_id = ? ORDER BY id"
            for row in self._database.select("messages", _MESSAGE_COLUMNS, order, (session_id,)):
                where = f"{self.name}, message {row['id']}"
                record = read_record(_decode_row(row), where, self._zone)
                if isinstance(record, ImportProblem):
                    yield record
                elif record is not None and is_review_request(record.role, record.text):
                    is_reviewed = True
                elif record is not None:
                    if not is_reviewed or record.role != "assistant":
                        record.is_undone = row["active"] == 0 and not row["compacted"]
                        yield record
                    is_reviewed = False
        except InvalidForeignDatabase as error:
            yield ImportProblem(where=f"{self.name}, session {session_id}", what=str(error))


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


@dataclass(slots=True)
class SessionLink:
    id: str
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
    """Which sessions of Hermes are one conversation: it started a new session for each compaction."""

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
    started_at = row["started_at"]
    return SessionLink(
        id=as_id(row["id"]),
        parent_id=as_id(row["parent_session_id"]),
        started_at=float(started_at) if isinstance(started_at, int | float) else 0.0,
        end_reason=as_text(row["end_reason"]),
        session_key=as_text(row["session_key"]),
        message_count=as_count(row["message_count"]),
        is_branch=config.get("_branched_from") is not None,
        is_delegate=config.get("_delegate_from") is not None or as_text(row["source"]) in _AGENT_SOURCES,
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


def convert_platform(name: str) -> Platform:
    """Return our platform; raise InvalidSource if the name is none."""
    return _PLATFORM_NAMES.get(name.lower()) or Platform(name)


def convert_origin(origin: Mapping[str, Any]) -> SessionSource | None:
    """Read a source as Hermes stores it, in the form that our adapters give to the same chat; raises InvalidSource.

    None for its own terminal and page.
    """
    name = as_text(origin.get("platform"))
    if name in OWN_SOURCES:
        return None
    platform = convert_platform(name)
    return SessionSource(
        platform,
        convert_chat_id(platform, _find_chat(platform, origin)),
        chat_type=_convert_chat_type(platform, as_text(origin.get("chat_type")) or "dm"),
        chat_name=as_text(origin.get("chat_name")) or None,
        chat_topic=as_text(origin.get("chat_topic")) or None,
        user_id=convert_chat_id(platform, as_id(origin.get("user_id"))) or None,
        user_name=as_text(origin.get("user_name")) or None,
        user_id_alt=convert_chat_id(platform, as_id(origin.get("user_id_alt"))) or None,
        thread_id=as_id(origin.get("thread_id")) or None,
    )


def convert_row(row: Mapping[str, Any]) -> SessionSource | None:
    """Read the source of a session that has only columns: older versions stored just the platform and the user."""
    platform_name = as_text(row.get("source"))
    user_id = as_id(row.get("user_id"))
    if platform_name in OWN_SOURCES or not (user_id or row.get("chat_id")):
        return None
    platform = convert_platform(platform_name)
    origin = {**row, "platform": platform_name}
    if not row.get("chat_id"):  # where it took place is unknown: it belongs to this person alone
        origin |= {"chat_id": user_id if platform in _CHAT_OF_USER else "", "chat_type": "dm", "thread_id": None}
    return convert_origin(origin)


def convert_chat_id(platform: Platform, chat_id: str) -> str:
    if platform in (Platform.WHATSAPP_WEB, Platform.WHATSAPP):
        return chat_id.removesuffix(_PHONE_SERVER)
    if platform == Platform.SIGNAL:
        return chat_id.removeprefix("group:")
    return chat_id


def _find_chat(platform: Platform, origin: Mapping[str, Any]) -> str:
    """Return the chat; there, a thread of Discord is a chat of its own."""
    chat_id, parent = as_id(origin.get("chat_id")), as_id(origin.get("parent_chat_id"))
    is_thread = bool(parent) and chat_id == as_id(origin.get("thread_id"))
    return parent if platform == Platform.DISCORD and is_thread else chat_id


def _convert_chat_type(platform: Platform, chat_type: str) -> ChatType:
    if platform == Platform.DISCORD and chat_type == "group":
        return ChatType.CHANNEL
    if chat_type in {"webhook", "private"}:
        return ChatType.DM
    try:
        return ChatType(chat_type)
    except InvalidSource:
        return ChatType.GROUP


@dataclass(frozen=True, slots=True)
class Route:
    session_id: str
    origin: dict[str, Any]
    is_suspended: bool  # the next message would start a new session
    model: str
    provider: str
    last_prompt_tokens: int
