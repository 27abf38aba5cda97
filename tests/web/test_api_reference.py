"""docs/reference/api.md documents every route, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from palaver.sessions.events import EventKind
from palaver.sessions.inbound import Outcome
from palaver.sessions.view_wire import ReceiptJson
from palaver.web.wire import ConversationJson, ConversationUsageJson, LogEventJson, MessageJson
from support.web import build_api_document

API_REFERENCE = (Path(__file__).parents[2] / "docs/reference/api.md").read_text(encoding="utf-8")
ROUTES = {
    f"{method.upper()} {path}" for path, operations in build_api_document()["paths"].items() for method in operations
}


def test_every_route_is_documented_and_every_documented_route_exists() -> None:
    documented = re.findall(r"^\| `((?:GET|POST|PUT|PATCH|DELETE) /[^`]*)` \|", API_REFERENCE, re.MULTILINE)
    assert sorted(documented) == sorted(ROUTES)


def test_every_field_of_the_main_schemas_is_documented() -> None:
    for schema in (ConversationJson, ConversationUsageJson, LogEventJson, MessageJson, ReceiptJson):
        assert [name for name in schema.__annotations__ if f"`{name}`" not in API_REFERENCE] == []


def test_every_event_kind_and_outcome_is_documented() -> None:
    assert [name for name in (*EventKind, *Outcome) if f"`{name}`" not in API_REFERENCE] == []
