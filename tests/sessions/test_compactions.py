"""A summary replaces the beginning of a conversation for the agent, until it is undone; no message is lost by it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput, NothingToRestore, SessionNotFound
from palaver.core.ids import PersonId
from palaver.sessions import log_table as events, table as sessions, versions_table as compactions
from palaver.sessions.events import Event, EventKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.sessions.events import Compaction

pytestmark = pytest.mark.both_engines


T = TypeVar("T")
NOW = 1_000_000
PERSON = PersonId("p_ada")


class Conversation:
    """One session, and the functions of tables under test."""

    def __init__(self, store: SessionStore, source: SessionSource) -> None:
        self.store = store
        self.id = store.get_or_create_session(source).session_id
        self.no = self.read(lambda tx: sessions.get(tx, self.id).no)

    def read(self, run: Callable[[Transaction], T]) -> T:
        return self.store._engine.run(Read(run))

    def write(self, run: Callable[[Transaction], T]) -> T:
        return self.store._engine.run(Write(run))

    def append(self, *texts: str) -> int:
        """Append messages and return the seq of the last: texts that begin with `u` are the user's."""
        return self.store.append_to_transcript(self.id, make_messages(texts))

    def compact(self, summary: str, first_kept_seq: int, **fields: Any) -> Compaction:
        new = compactions.NewCompaction(
            summary=summary,
            first_kept_seq=first_kept_seq,
            last_replaced_seq=first_kept_seq - 1,
            message_count=2,
            **fields,
        )
        return self.write(lambda tx: compactions.create(tx, self.no, new, NOW, PERSON))

    def undo_compaction(self) -> Compaction:
        return self.write(lambda tx: compactions.undo_last(tx, self.no, NOW, PERSON))

    def find_summary(self) -> str | None:
        current = self.read(lambda tx: compactions.find_current(tx, self.no))
        return current.summary if current else None

    def load_context(self, up_to: int = 10**9, first_seq: int = 0, **options: Any) -> tuple[list[str], bool]:
        found, is_shortened = self.read(
            lambda tx: events.load_context(tx, self.no, first_seq=first_seq, up_to=up_to, **options)
        )
        return [event.message.text for event in found if event.message is not None], is_shortened

    def load_view(self, compaction: Compaction) -> list[str]:
        found, _ = self.read(lambda tx: compactions.load_view(tx, self.no, compaction, 10**9))
        return [event.message.text for event in found if event.message is not None]

    @property
    def last_event(self) -> Event:
        return self.store.load_events(self.id)[-1]


def make_messages(texts: Any) -> list[dict[str, str]]:
    return [{"role": "user" if text.startswith("u") else "assistant", "content": text} for text in texts]


@pytest.fixture
def conversation(store: SessionStore, dm: Callable[..., SessionSource]) -> Conversation:
    return Conversation(store, dm())


# -- compacting and undoing it ------------------------------------------------------------------------------


def test_a_new_conversation_has_no_summary(conversation: Conversation) -> None:
    assert conversation.find_summary() is None
    with pytest.raises(NothingToRestore):
        conversation.undo_compaction()


def test_a_compaction_is_an_event_and_hides_nothing(conversation: Conversation) -> None:
    conversation.append("u1", "a1", "u2", "a2")
    compaction = conversation.compact("They talked. \0 \ud83d", 4, focus="soup")
    assert conversation.read(lambda tx: compactions.find_current(tx, conversation.no)) == compaction
    event = conversation.last_event
    assert (compaction.seq, compaction.first_kept_seq, compaction.message_count) == (event.seq, 4, 2)
    assert (event.kind, event.person_id, event.facts["focus"]) == (EventKind.COMPACTED, PERSON, "soup")
    assert len(conversation.store.load_transcript(conversation.id)) == 4


def test_the_size_of_the_context_is_unknown_after_a_compaction(conversation: Conversation) -> None:
    store = conversation.store
    last_seq = conversation.append("u1", "a1", "u2")
    store.update_session(conversation.id, last_prompt_tokens=900)
    conversation.compact("one", last_seq)
    assert store.get_session(conversation.id).last_prompt_tokens == 0
    store.update_session(conversation.id, last_prompt_tokens=100)
    conversation.undo_compaction()
    assert store.get_session(conversation.id).last_prompt_tokens == 0


def test_compactions_are_undone_one_at_a_time(conversation: Conversation) -> None:
    conversation.append("u1", "a1", "u2", "a2", "u3", "a3")
    first, second = conversation.compact("first", 4), conversation.compact("second", 6)
    assert conversation.undo_compaction() == second
    assert conversation.find_summary() == "first"
    event = conversation.last_event
    assert (event.kind, event.person_id) == (EventKind.COMPACTION_UNDONE, PERSON)
    assert event.facts["compaction_seq"] == second.seq
    assert conversation.undo_compaction() == first
    assert conversation.find_summary() is None
    with pytest.raises(NothingToRestore):
        conversation.undo_compaction()


def test_a_deleted_session_has_no_summary(conversation: Conversation) -> None:
    conversation.store.delete_session(conversation.id)
    assert conversation.find_summary() is None
    with pytest.raises(SessionNotFound):
        conversation.compact("x", 4)
    with pytest.raises(SessionNotFound):
        conversation.undo_compaction()


def test_a_fork_has_no_summary(conversation: Conversation) -> None:
    conversation.append("u1", "a1", "u2")
    conversation.compact("x", 4)
    fork_id = conversation.store.fork(conversation.id).id
    fork_no = conversation.read(lambda tx: sessions.get(tx, fork_id).no)
    assert conversation.read(lambda tx: compactions.find_current(tx, fork_no)) is None


def test_a_carried_message_stays_in_the_view_until_it_is_undone(conversation: Conversation) -> None:
    conversation.append("u1", "u2", "a1", "a2", "u3")
    compaction = conversation.compact("x", 5, carried_seqs=(3,))
    assert conversation.load_view(compaction) == ["u2", "a2", "u3"]
    conversation.store.undo(conversation.id, 1)
    assert conversation.load_view(compaction) == ["u2", "a2"]
    conversation.store.undo(conversation.id, 1)
    assert conversation.find_summary() is None


def test_a_new_summary_covers_what_was_left_out_without_one(conversation: Conversation) -> None:
    conversation.append("u1", "a1", "u2", "a2", "u3", "a3")
    summary = conversation.compact("first", 4)
    conversation.compact("first", 6, omitted_count=2)
    last = conversation.read(lambda tx: compactions.find_last_summary(tx, conversation.no))
    assert last == summary
    conversation.undo_compaction()
    assert conversation.read(lambda tx: compactions.find_current(tx, conversation.no)) == summary


# -- undo and rewrite of summarized messages ----------------------------------------------------------------


@pytest.mark.parametrize(("turns", "stays"), [(1, True), (2, True), (3, False)])
def test_an_undo_of_summarized_messages_ends_the_compaction(
    conversation: Conversation, turns: int, stays: bool
) -> None:
    conversation.append("u1", "a1", "u2", "a2", "u3", "a3")
    conversation.compact("x", 4)
    conversation.store.undo(conversation.id, turns)
    assert (conversation.find_summary() is not None) == stays
    conversation.store.redo(conversation.id)
    assert (conversation.find_summary() is not None) == stays


@pytest.mark.parametrize(
    ("texts", "stays"),
    [
        (["u1", "a1", "u2", "other"], True),
        (["u1", "a1"], True),
        (["u1", "a1", "u2", "a2", "u3"], True),
        (["u1", "other", "u2", "a2"], False),
        ([], False),
    ],
)
def test_a_rewrite_of_summarized_messages_ends_the_compaction(
    conversation: Conversation, texts: list[str], stays: bool
) -> None:
    conversation.append("u1", "a1", "u2", "a2")
    conversation.compact("x", 4)
    conversation.store.rewrite_transcript(conversation.id, make_messages(texts))
    assert (conversation.find_summary() is not None) == stays


def test_messages_undone_while_they_were_summarized_do_not_return_in_the_summary(conversation: Conversation) -> None:
    conversation.append("u1", "a1", "u2", "a2")
    conversation.store.undo(conversation.id, 2)
    with pytest.raises(InvalidInput, match="changed while"):
        conversation.compact("They talked about what was undone.", 4)
    assert conversation.find_summary() is None


# -- the context of a turn ----------------------------------------------------------------------------------


def test_the_context_contains_the_visible_messages_from_a_seq_on(conversation: Conversation) -> None:
    conversation.append("u1", "a1", "u2", "a2", "u3", "a3")
    assert conversation.load_context() == (["u1", "a1", "u2", "a2", "u3", "a3"], False)
    conversation.store.undo(conversation.id)
    conversation.append("u4")
    assert conversation.load_context() == (["u1", "a1", "u2", "a2", "u4"], False)
    assert conversation.load_context(first_seq=4) == (["u2", "a2", "u4"], False)


def test_the_context_contains_later_answers_but_no_later_questions(conversation: Conversation) -> None:
    conversation.append("u1", "u2", "u3", "a1", "a2")
    assert conversation.load_context(up_to=3) == (["u1", "u2", "a1", "a2"], False)


def test_the_beginning_of_a_shortened_context_rarely_moves(conversation: Conversation) -> None:
    beginnings = []
    for number in range(2, 42):
        conversation.append(f"u{number}")
        texts, is_shortened = conversation.load_context(max_messages=10)
        assert texts == [f"u{each}" for each in range(number - len(texts) + 1, number + 1)]
        assert is_shortened == (number - 1 > 10)
        assert min(number - 1, 6) <= len(texts) <= 10
        beginnings.append(int(texts[0][1:]))
    steps = [after - before for before, after in pairwise(beginnings) if after != before]
    assert set(steps) == {5}


def test_undone_messages_do_not_move_the_beginning_of_the_context(conversation: Conversation) -> None:
    conversation.append(*(f"u{number}" for number in range(30)))
    context = conversation.load_context(max_messages=10)
    for _ in range(5):
        conversation.append("u-undone", "a-undone")
        conversation.store.undo(conversation.id)
    assert conversation.load_context(max_messages=10) == context


def test_after_a_compaction_all_kept_messages_are_in_the_context_while_they_fit(conversation: Conversation) -> None:
    conversation.append(*(f"u{number}" for number in range(2, 32)))
    expected = [f"u{number}" for number in range(22, 32)]
    assert conversation.load_context(max_messages=10, first_seq=22) == (expected, False)
    texts, is_shortened = conversation.load_context(max_messages=10, first_seq=21)
    assert is_shortened
    assert texts[-1] == "u31"


@pytest.mark.parametrize("max_messages", [1, 2, 3])
def test_the_context_always_contains_the_last_message(conversation: Conversation, max_messages: int) -> None:
    for number in range(8):
        conversation.append(f"u{number}")
        assert conversation.load_context(max_messages=max_messages)[0][-1] == f"u{number}"
