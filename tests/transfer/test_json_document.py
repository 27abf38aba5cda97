"""The JSON document of a conversation: made page by page, and the same as before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.errors import SessionNotFound
from palaver.sessions.export import DocumentFormat
from palaver.transfer import documents
from palaver.transfer.documents import Documents

if TYPE_CHECKING:
    from palaver import SessionStore

ADA = SessionSource("telegram", "1", user_id="1", user_name="Ada")
BEN = SessionSource("telegram", "2", user_id="2", user_name="Ben")
pytestmark = pytest.mark.both_engines


def test_the_document_has_the_complete_log(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PAGE_EVENTS", 3)
    for number in range(10):
        session_id = store.record_user_message(ADA, f'line {number}\n"quoted" 明天 \x7f').session_id
        store.append_to_transcript(session_id, f"answer {number}")
    store.undo(session_id)
    principal = store.get_or_create_person(ADA).principal
    text = "".join(Documents(store, None).iterate(principal, session_id, DocumentFormat.JSON))
    assert json.loads(text) == store.seen_by(principal).export(session_id)
    other = store.get_or_create_person(BEN).principal
    with pytest.raises(SessionNotFound):
        Documents(store, None).iterate(other, session_id, DocumentFormat.JSON)


def test_an_empty_conversation_has_a_document_too(store: SessionStore) -> None:
    entry = store.get_or_create_session(ADA)
    principal = store.get_or_create_person(ADA).principal
    text = "".join(Documents(store, None).iterate(principal, entry.session_id, DocumentFormat.JSON))
    assert json.loads(text) == store.seen_by(principal).export(entry.session_id)


def test_only_a_page_is_in_memory_at_a_time(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PAGE_EVENTS", 5)
    for number in range(40):
        session_id = store.record_user_message(ADA, f"{number} " + "x" * 30_000).session_id
    principal = store.get_or_create_person(ADA).principal
    chunks = Documents(store, None).iterate(principal, session_id, DocumentFormat.JSON)
    sizes = [len(chunk) for chunk in chunks]
    assert len(sizes) > 10
    assert max(sizes) < documents.CHUNK_CHARS + 40_000


def test_what_is_added_during_an_export_is_not_in_it(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PAGE_EVENTS", 2)
    monkeypatch.setattr(documents, "CHUNK_CHARS", 1)
    for number in range(5):
        session_id = store.record_user_message(ADA, f"line {number}").session_id
    principal = store.get_or_create_person(ADA).principal
    before = store.seen_by(principal).export(session_id)
    chunks = Documents(store, None).iterate(principal, session_id, DocumentFormat.JSON)
    first = next(chunks)
    store.record_user_message(ADA, "too late")
    assert json.loads(first + "".join(chunks)) == before
