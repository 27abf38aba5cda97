"""Hermes' `state.db`, in every version of its schema: what is read is what the file has, whatever its version says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from palaver.core.foreign_sqlite import ForeignDatabase, InvalidForeignDatabase, open_foreign_database
from palaver.transfer.imported import ImportProblem
from palaver.transfer.readers.hermes.records import Record, read_record
from palaver.transfer.readers.hermes.texts import is_review_request
from palaver.transfer.readers.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator
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
