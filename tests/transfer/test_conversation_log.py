"""The log of an imported conversation: the same in every run, and never ahead of its progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from palaver.transfer import conversation_log
from palaver.transfer.conversation_log import ConversationLog
from support.made_reader import make_compaction, make_message

if TYPE_CHECKING:
    from palaver.transfer.imported import ImportedEntry


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_log, "MAX_HIDDEN_RUN", 3)


def make_log() -> ConversationLog:
    return ConversationLog(started_at=0, started_facts={"reason": "first"}, is_from_human=True)


def make_entries(kinds: list[str]) -> list[ImportedEntry]:
    return [
        make_compaction(f"summary {number}", number, kept_count=1)
        if kind == "summary"
        else make_message(f"text {number}", number, "user" if number % 2 == 0 else "assistant", hidden=kind == "hidden")
        for number, kind in enumerate(kinds)
    ]


@given(kinds=st.lists(st.sampled_from(["visible", "hidden", "summary"]), max_size=30))
def test_the_rows_so_far_are_those_that_the_progress_means(kinds: list[str]) -> None:
    log, entries = make_log(), make_entries(kinds)
    rows = [log.first_row]
    for entry in entries:
        rows += log.add(entry)[0]
        progress = log.progress
        assert [row[0] for row in rows] == list(range(1, progress.last_seq + 1))
        shorter = make_log()
        for earlier in entries[: progress.entry_count]:
            shorter.add(earlier)
        assert shorter.digest == progress.digest
    rows += log.finish(None, None)
    assert [row[0] for row in rows] == list(range(1, log.counters.last_seq + 1))
    visible = [row for row in rows if row[1] == "message" and row[8] is None]
    assert len(visible) == log.counters.message_count == kinds.count("visible")
    for row in rows:
        if row[8] is not None:  # hidden: by a later event that says from where on
            event = rows[row[8] - 1]
            assert event[1] == "rewritten"
            assert row[0] < event[0]


def test_entries_that_differ_in_anything_have_different_digests() -> None:
    entries: list[ImportedEntry] = [
        make_message("a"),
        make_message("b"),
        make_message("a", 1),
        make_message("a", role="assistant"),
        make_message("a", hidden=True),
        make_message("a", reasoning="r"),
        make_message("a", platform_message_id="1"),
        make_message("a", author={"id": "1", "name": "x"}),
        make_compaction("a", 0),
    ]
    digests = []
    for entry in entries:
        log = make_log()
        log.add(entry)
        digests.append(log.digest)
    assert len(set(digests)) == len(entries)
