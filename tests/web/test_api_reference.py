"""docs/reference/api.md tells of every route, and of nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from palaver.domain.events import EventKind
from palaver.domain.inbound import Outcome
from palaver.web.message_schemas import EventOut, MessageOut, ReceiptOut
from palaver.web.session_schemas import SessionOut, UsageOut
from support.web import api_document

TEXT = (Path(__file__).parents[2] / "docs/reference/api.md").read_text(encoding="utf-8")
ROUTES = {f"{method.upper()} {path}" for path, operations in api_document()["paths"].items() for method in operations}


def test_every_route_is_documented_and_every_documented_route_exists() -> None:
    documented = re.findall(r"^\| `((?:GET|POST|PUT|PATCH|DELETE) /[^`]*)` \|", TEXT, re.MULTILINE)
    assert sorted(documented) == sorted(ROUTES)


def test_every_key_of_the_main_shapes_is_named() -> None:
    for shape in (SessionOut, UsageOut, EventOut, MessageOut, ReceiptOut):
        assert [name for name in shape.model_fields if f"`{name}`" not in TEXT] == []


def test_every_kind_of_event_and_every_outcome_is_named() -> None:
    assert [name for name in (*EventKind, *Outcome) if f"`{name}`" not in TEXT] == []
