"""A summary stands for the beginning of a conversation, until it is taken back; nothing is lost by it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from palaver.domain.errors import InvalidInput, NoSuchSession, NothingToRestore
from palaver.domain.events import Event, EventKind
from palaver.domain.ids import PersonId
from palaver.storage import compactions, events, sessions
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore
    from palaver.domain.compaction import Compaction
    from palaver.storage.engines.base import Transaction

T = TypeVar("T")
NOW = 1_000_000
PERSON = PersonId("p_ada")


class Talk:
    """One conversation, and what storage does to it."""

    def __init__(self, store: SessionStore, source: SessionSource) -> None:
        self.store = store
        self.id = store.get_or_create_session(source).session_id
        self.no = self.read(lambda tx: sessions.get(tx, self.id).no)

    def read(self, run: Callable[[Transaction], T]) -> T:
        return self.store._engine.run(Read(run))

    def write(self, run: Callable[[Transaction], T]) -> T:
        return self.store._engine.run(Write(run))

    def say(self, *texts: str) -> int:
        """Messages of one letter and more: `u…` asks, anything else answers; the number of the last."""
        said = [{"role": "user" if text.startswith("u") else "assistant", "content": text} for text in texts]
        return self.store.append_to_transcript(self.id, said)

    def compact(self, summary: str, kept_from: int, **more: Any) -> Compaction:
        return self.write(
            lambda tx: compactions.compact(tx, self.no, summary, kept_from=kept_from, messages=2, now=NOW, **more)
        )

    def expand(self) -> Compaction:
        return self.write(lambda tx: compactions.expand(tx, self.no, NOW, PERSON))

    def summary(self) -> str | None:
        current = self.read(lambda tx: compactions.current(tx, self.no))
        return current.summary if current else None

    def context(self, upto: int = 10**9, kept_from: int = 0, **more: Any) -> tuple[list[str], bool]:
        found, left_out = self.read(lambda tx: events.context(tx, self.no, kept_from=kept_from, upto=upto, **more))
        return [event.message.text for event in found if event.message is not None], left_out

    @property
    def last(self) -> Event:
        return self.store.events(self.id)[-1]


@pytest.fixture
def talk(store: SessionStore, dm: Callable[..., SessionSource]) -> Talk:
    return Talk(store, dm())


# -- compact and expand --------------------------------------------------------------------------------------


def test_a_conversation_begins_without_a_summary(talk: Talk) -> None:
    assert talk.summary() is None
    with pytest.raises(NothingToRestore):
        talk.expand()


def test_a_compaction_is_an_event_and_hides_nothing(talk: Talk) -> None:
    talk.say("u1", "a1", "u2", "a2")
    done = talk.compact("They spoke. \0 \ud83d", 4, person_id=PERSON, focus="soup")
    assert talk.read(lambda tx: compactions.current(tx, talk.no)) == done
    assert (done.seq, done.kept_from, done.messages) == (talk.last.seq, 4, 2)
    assert (talk.last.kind, talk.last.person_id, talk.last.facts["focus"]) == (EventKind.COMPACTED, PERSON, "soup")
    assert len(talk.store.load_transcript(talk.id)) == 4


def test_how_full_the_context_is_must_be_told_anew_after_a_compaction(talk: Talk) -> None:
    kept_from = talk.say("u1", "a1", "u2")
    talk.store.update_session(talk.id, last_prompt_tokens=900)
    talk.compact("one", kept_from)
    assert talk.store.get_session(talk.id).last_prompt_tokens == 0
    talk.store.update_session(talk.id, last_prompt_tokens=100)
    talk.expand()
    assert talk.store.get_session(talk.id).last_prompt_tokens == 0


def test_taking_compactions_back_goes_one_step_at_a_time(talk: Talk) -> None:
    talk.say("u1", "a1", "u2", "a2", "u3", "a3")
    first, second = talk.compact("first", 4), talk.compact("second", 6)
    assert talk.expand() == second
    assert talk.summary() == "first"
    assert (talk.last.kind, talk.last.facts["compaction"], talk.last.person_id) == (
        EventKind.EXPANDED,
        second.seq,
        PERSON,
    )
    assert talk.expand() == first
    assert talk.summary() is None
    with pytest.raises(NothingToRestore):
        talk.expand()


def test_a_session_that_is_gone_has_no_summary(talk: Talk) -> None:
    talk.store.delete_session(talk.id)
    assert talk.summary() is None
    with pytest.raises(NoSuchSession):
        talk.compact("x", 4)
    with pytest.raises(NoSuchSession):
        talk.expand()


def test_a_fork_begins_whole(talk: Talk) -> None:
    talk.say("u1", "a1", "u2")
    talk.compact("x", 4)
    copy = talk.store.fork(talk.id)
    number = talk.read(lambda tx: sessions.get(tx, copy.id).no)
    assert talk.read(lambda tx: compactions.current(tx, number)) is None


# -- what an undo and a rewrite do to it ---------------------------------------------------------------------


@pytest.mark.parametrize(("turns", "holds"), [(1, True), (2, True), (3, False)])
def test_an_undo_of_what_a_summary_stands_for_ends_it(talk: Talk, turns: int, holds: bool) -> None:
    talk.say("u1", "a1", "u2", "a2", "u3", "a3")
    talk.compact("x", 4)
    talk.store.undo(talk.id, turns)
    assert (talk.summary() is not None) == holds
    talk.store.redo(talk.id)
    assert (talk.summary() is not None) == holds


@pytest.mark.parametrize(
    ("texts", "holds"),
    [
        (["u1", "a1", "u2", "other"], True),
        (["u1", "a1"], True),
        (["u1", "a1", "u2", "a2", "u3"], True),
        (["u1", "other", "u2", "a2"], False),
        ([], False),
    ],
)
def test_a_rewrite_of_what_a_summary_stands_for_ends_it(talk: Talk, texts: list[str], holds: bool) -> None:
    talk.say("u1", "a1", "u2", "a2")
    talk.compact("x", 4)
    new = [{"role": "user" if text.startswith("u") else "assistant", "content": text} for text in texts]
    talk.store.rewrite_transcript(talk.id, new)
    assert (talk.summary() is not None) == holds


def test_what_was_undone_while_it_was_summarised_does_not_come_back_in_a_summary(talk: Talk) -> None:
    talk.say("u1", "a1", "u2", "a2")
    talk.store.undo(talk.id, 2)
    with pytest.raises(InvalidInput, match="changed while"):
        talk.compact("They spoke of what was undone.", 4)
    assert talk.summary() is None


# -- what a turn is to see -----------------------------------------------------------------------------------


def test_the_context_is_what_is_visible_from_a_place_on(talk: Talk) -> None:
    talk.say("u1", "a1", "u2", "a2", "u3", "a3")
    assert talk.context() == (["u1", "a1", "u2", "a2", "u3", "a3"], False)
    talk.store.undo(talk.id)
    talk.say("u4")
    assert talk.context() == (["u1", "a1", "u2", "a2", "u4"], False)
    assert talk.context(kept_from=4) == (["u2", "a2", "u4"], False)


def test_later_answers_are_part_of_it_and_later_questions_are_not(talk: Talk) -> None:
    talk.say("u1", "u2", "u3", "a1", "a2")
    assert talk.context(upto=3) == (["u1", "u2", "a1", "a2"], False)


def test_the_last_of_very_many_messages_begin_at_a_place_that_seldom_moves(talk: Talk) -> None:
    begins = []
    for number in range(2, 42):
        talk.say(f"u{number}")
        shown, left_out = talk.context(most=10)
        assert shown == [f"u{each}" for each in range(number - len(shown) + 1, number + 1)]
        assert left_out == (number - 1 > 10)
        assert min(number - 1, 6) <= len(shown) <= 10
        begins.append(int(shown[0][1:]))
    moves = [now - before for before, now in pairwise(begins) if now != before]
    assert set(moves) == {5}


def test_undone_messages_do_not_move_the_place_where_the_rest_begins(talk: Talk) -> None:
    talk.say(*(f"u{number}" for number in range(30)))
    before = talk.context(most=10)
    for _ in range(5):
        talk.say("u-undone", "a-undone")
        talk.store.undo(talk.id)
    assert talk.context(most=10) == before


def test_after_a_compaction_everything_kept_is_shown_while_it_fits(talk: Talk) -> None:
    talk.say(*(f"u{number}" for number in range(2, 32)))
    assert talk.context(most=10, kept_from=22) == ([f"u{number}" for number in range(22, 32)], False)
    shown, left_out = talk.context(most=10, kept_from=21)
    assert left_out
    assert shown[-1] == "u31"


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_last_message_is_always_among_it(talk: Talk, most: int) -> None:
    for number in range(8):
        talk.say(f"u{number}")
        assert talk.context(most=most)[0][-1] == f"u{number}"
