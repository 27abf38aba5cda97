"""Which chat is on which session: the table `gateway_routing`, and `sessions.json` for chats that are not in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.transfer.imported import ImportProblem
from palaver.transfer.readers.hermes.state_database import parse_stored_json
from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.plain_file import read_plain_file
from palaver.transfer.readers.values import as_count, as_dict, as_id, as_text

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.transfer.readers.hermes.state_database import StateDatabase


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


def read_routes(database: StateDatabase | None, path: Path, name: str) -> tuple[dict[str, Route], list[ImportProblem]]:
    """Read all routes by session key; like Hermes, the database wins."""
    routes: dict[str, Route] = {}
    problems: list[ImportProblem] = []
    for key, entry in _read_file(path, name, problems).items():
        if not key.startswith("_"):
            _add_route(routes, problems, key, entry, name)
    if database is not None:
        try:
            for row in database.read_routes():
                key = as_text(row["session_key"])
                _add_route(routes, problems, key, parse_stored_json(row["entry_json"], None), database.name)
        except InvalidForeignDatabase as error:
            problems.append(ImportProblem(where=database.name, what=str(error)))
    return routes, problems


def _read_file(path: Path, name: str, problems: list[ImportProblem]) -> dict[str, Any]:
    try:
        return as_dict(parse_json(read_plain_file(path).removeprefix(b"\xef\xbb\xbf")))
    except FileNotFoundError:
        return {}
    except (OSError, UnreadableItem) as error:
        problems.append(ImportProblem(where=name, what=f"Chats and their sessions cannot be read: {error}"))
        return {}


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
