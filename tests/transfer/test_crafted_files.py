"""Files that a person has crafted to do harm change nothing of others, break nothing, and never crash an import."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from palaver import Principal
from palaver.agent.history import build_messages
from palaver.core.engines.base import Write
from palaver.media.attachments import Attachments
from palaver.people import table as people
from palaver.people.model import Role
from palaver.transfer.importer import Importer
from palaver.transfer.readers import open_reader

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore
    from palaver.transfer.report import ImportReport

HEADER = {"type": "header", "format": "palaver.export/1", "scope": "person"}
LONG = "x" * 100_000


def make_session(session_id: Any = "one", **fields: Any) -> dict[str, Any]:
    return {"type": "session", "id": session_id, "created_at": "2026-01-02T03:04:05+00:00"} | fields


def make_event(seq: int = 1, session_id: Any = "one", **fields: Any) -> dict[str, Any]:
    values = {"kind": "message", "created_at": "2026-01-02T03:04:05+00:00", "role": "user", "content": "hello"}
    return {"type": "event", "session": session_id, "seq": seq} | values | fields


@pytest.fixture
def member(store: SessionStore) -> Principal:
    person = store.engine.run(Write(lambda tx: people.add_person(tx, "Mallory", Role.MEMBER, 1_000_000))).person
    return Principal(person.id, person.role)


async def import_records(store: SessionStore, member: Principal, tmp_path: Path, *records: Any) -> ImportReport:
    path = tmp_path / "crafted.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in (HEADER, *records)))
    importer = Importer(store, Attachments(store, tmp_path / "attachments"))
    await importer.import_for_person(member, open_reader("palaver", path), dry_run=True)
    return await importer.import_for_person(member, open_reader("palaver", path))


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([make_session("x" * 100_000), make_event(session_id="x" * 100_000)], id="a long id"),
        pytest.param([make_session(model=LONG, provider=LONG), make_event()], id="a long model"),
        pytest.param([make_session(parent=LONG, title=LONG, workspace=LONG), make_event()], id="long texts"),
        pytest.param([make_session("../../x\0\ud800", title="\ud800\0", model="\0"), make_event()], id="bad texts"),
        pytest.param([make_session(created_at="0001-01-01T00:00:00+14:00"), make_event()], id="the first day"),
        pytest.param(
            [make_session(active_at="9999-12-31T23:59:59-14:00"), make_event(created_at="0001-01-01T00:00:00+14:00")],
            id="days outside of the calendar",
        ),
        pytest.param([make_session(), make_event(body={"tool_calls": 5})], id="calls that are no list"),
        pytest.param([make_session(), make_event(body={"tool_calls": [5, None, {}]})], id="calls that are none"),
        pytest.param([make_session(), make_event(role="tool", body={"tool_call_id": [1]})], id="an id that is a list"),
        pytest.param([make_session(), make_event(role="assistant", body={"reasoning": {"a": 1}})], id="reasoning"),
        pytest.param([make_session(), make_event(content=None, body={"content": {"a": [1]}})], id="content"),
        pytest.param([make_session(), make_event(body_text='{"a":1e999}')], id="an infinite number"),
        pytest.param([make_session(), make_event(body={"answers": "x", "interrupted": 5})], id="answers"),
        pytest.param([make_session(), make_event(body_text="[" * 100_000)], id="deep JSON"),
        pytest.param([make_session(project=5), make_event()], id="a project"),
        pytest.param([{"type": "memory", "id": LONG, "text": "\0\ud800" + LONG}], id="a memory"),
        pytest.param([{"type": "attachment", "id": "a", "name": "\0\ud800"}, make_session()], id="a file"),
    ],
)
async def test_odd_values_never_break_an_import_or_what_it_has_imported(
    store: SessionStore, member: Principal, tmp_path: Path, records: list[Any]
) -> None:
    other = [make_session("two"), make_event(session_id="two", content="still here")]
    await import_records(store, member, tmp_path, *records, *other)
    view = store.seen_by(member)
    texts = []
    for session in view.list():
        events = view.load_messages(session.id)
        texts += [event.message.text for event in events if event.message is not None]
        build_messages(events, input_seq=events[-1].seq if events else 0, compaction=None, shared=False)
        view.export(session.id)
        view.export_markdown(session.id)
    assert "still here" in texts
