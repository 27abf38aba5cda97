"""Versions: a message is edited or asked again in place, nothing is lost, and one path is visible at any time."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from palaver import SessionSource
from palaver.core.engines.base import Read, Write
from palaver.core.errors import ChangeTooLarge, InvalidInput, NothingToDo
from palaver.sessions import (
    log_table as events,
    message_edits,
    table as sessions,
    transcript_table as transcript_pages,
    versions_table as versions,
)
from palaver.sessions.events import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.core.engines.base import Row, Transaction
    from palaver.sessions.model import TranscriptPage, VersionInfo

pytestmark = pytest.mark.both_engines

T = TypeVar("T")
NOW = 1_000_000


class Conversation:
    """One session, and the functions of tables under test."""

    def __init__(self, store: SessionStore, user: str = "ada") -> None:
        self.store = store
        self.id = store.get_or_create_session(SessionSource("telegram", user, user_id=user)).session_id
        self.no = self.read(lambda tx: sessions.get(tx, self.id).no)

    def read(self, run: Callable[[Transaction], T]) -> T:
        return self.store.engine.run(Read(run))

    def write(self, run: Callable[[Transaction], T]) -> T:
        return self.store.engine.run(Write(run))

    def say(self, question: str, answer: str | None = None) -> int:
        """Append a question and its answer; return the number of the question."""
        seq = self.store.append_to_transcript(self.id, {"role": "user", "content": question})
        if answer is not None:
            self.store.append_to_transcript(self.id, {"role": "assistant", "content": answer, "answers": seq})
        return seq

    def replace(self, seq: int, question: str, answer: str | None = None, *, is_edit: bool = True) -> int:
        """Start another version of a message; return the number of its message."""
        self.write(lambda tx: versions.start_version(tx, self.no, seq, NOW, is_edit=is_edit))
        return self.say(question, answer)

    def choose(self, seq: int, number: int) -> VersionInfo:
        """Choose a version of a visible message."""
        info = self.read(lambda tx: versions.find_info(tx, self.no, seq))
        assert info is not None
        return self.write(lambda tx: versions.choose_version(tx, self.no, info.group, number, NOW))

    def compact(self, first_kept_seq: int, covered: list[str]) -> None:
        new = versions.NewCompaction(
            summary=json.dumps(covered),
            first_kept_seq=first_kept_seq,
            last_replaced_seq=self.load_seqs()[covered[-1]] if covered else 0,
            message_count=len(covered),
        )
        self.write(lambda tx: versions.create(tx, self.no, new, NOW))

    def find_summary(self) -> list[str] | None:
        current = self.read(lambda tx: versions.find_current(tx, self.no))
        return None if current is None else list(json.loads(current.summary))

    def load_texts(self) -> list[str]:
        return [message["content"] for message in self.store.load_transcript(self.id)]

    def load_seqs(self) -> dict[str, int]:
        """The numbers of the visible messages by their texts."""
        log = self.read(lambda tx: events.list_messages(tx, self.no))
        return {event.message.text: event.seq for event in log if event.message is not None}

    def load_infos(self) -> dict[str, tuple[int, int]]:
        log = self.read(lambda tx: events.list_messages(tx, self.no))
        infos = self.read(lambda tx: versions.load_infos(tx, self.no, log))
        texts = {event.seq: event.message.text for event in log if event.message is not None}
        return {texts[seq]: (info.number, info.count) for seq, info in infos.items()}

    def load_page_texts(self, limit: int) -> list[str]:
        """The texts that the page shows, read backwards page by page."""
        texts: list[str] = []
        before: int | None = None
        while True:
            page = self._load_page(before, limit)
            texts = [event.message.text for event in page.events if event.message is not None] + texts
            if not page.has_more_before:
                return texts
            before = page.events[0].seq

    def _load_page(self, before: int | None, limit: int) -> TranscriptPage:
        return self.read(lambda tx: transcript_pages.load_page(tx, self.no, before=before, limit=limit))

    def load_view_texts(self) -> list[str]:
        """The texts that the model sees as they are, after the summary."""

        def run(tx: Transaction) -> list[str]:
            current = versions.find_current(tx, self.no)
            log, _ = versions.load_view(tx, self.no, current, events.END_OF_LOG)
            return [event.message.text for event in log if event.message is not None]

        return self.read(run)


class RecordingTransaction:
    """Runs statements and keeps every value that they return."""

    def __init__(self, tx: Transaction, values: list[object]) -> None:
        self._tx = tx
        self._values = values

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def fetch_one(self, sql: str, *params: object) -> Row | None:
        row = self._tx.fetch_one(sql, *params)
        self._values += row or ()
        return row

    def fetch_all(self, sql: str, *params: object) -> list[Row]:
        rows = self._tx.fetch_all(sql, *params)
        self._values += [value for row in rows for value in row]
        return rows


@pytest.fixture
def conversation(store: SessionStore) -> Conversation:
    return Conversation(store)


# ---- single cases ------------------------------------------------------------------------------------------


def test_a_new_version_hides_what_followed_and_choosing_brings_it_back(conversation: Conversation) -> None:
    conversation.say("q1", "a1")
    first = conversation.say("q2", "a2")
    conversation.say("q3", "a3")
    second = conversation.replace(first, "q2 better", "a2 better")
    assert conversation.load_texts() == ["q1", "a1", "q2 better", "a2 better"]
    assert conversation.load_infos() == {"q2 better": (2, 2)}
    conversation.choose(second, 1)
    assert conversation.load_texts() == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert conversation.load_infos() == {"q2": (1, 2)}
    conversation.say("q4", "a4")
    conversation.choose(first, 2)
    assert conversation.load_texts() == ["q1", "a1", "q2 better", "a2 better"]
    conversation.choose(second, 1)
    assert conversation.load_texts() == ["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"]


@pytest.mark.parametrize(("limit", "value"), [("MAX_CHANGED_EVENTS", 3), ("MAX_CHANGED_BYTES", 1000)])
def test_what_would_keep_others_waiting_is_refused_and_changes_nothing(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    early = conversation.say("one", "1")
    second = conversation.replace(early, "another one", "1" * 1500)
    conversation.say("three", "3")
    monkeypatch.setattr(events, limit, value)
    before = conversation.read(lambda tx: events.list_events(tx, conversation.no))
    for change in (
        lambda tx: versions.start_version(tx, conversation.no, second, NOW),
        lambda tx: versions.choose_version(tx, conversation.no, early, 1, NOW),
        lambda tx: events.undo_turns(tx, conversation.no, 2, NOW),
    ):
        with pytest.raises(ChangeTooLarge, match="Branch the conversation instead"):
            conversation.write(change)
    assert conversation.read(lambda tx: events.list_events(tx, conversation.no)) == before
    assert conversation.write(lambda tx: events.undo_turns(tx, conversation.no, 1, NOW)).turns == 1


def test_a_change_that_is_refused_reads_no_texts(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused in a write transaction, for which others wait."""
    monkeypatch.setattr(events, "MAX_CHANGED_BYTES", 50_000)
    question, answer = "q" * 10_000, "a" * 10_000
    first, *_ = [conversation.say(question, answer) for _ in range(6)]
    texts: list[object] = []

    def refuse(change: Callable[[Transaction], object]) -> None:
        def run(tx: Transaction) -> None:
            recording = RecordingTransaction(tx, texts)
            change(cast("Transaction", recording))

        with pytest.raises(ChangeTooLarge):
            conversation.write(run)

    refuse(lambda tx: events.undo_turns(tx, conversation.no, 6, NOW))
    refuse(lambda tx: versions.start_version(tx, conversation.no, first, NOW))
    assert texts
    assert question not in texts
    assert answer not in texts


def test_versions_inside_versions_come_back_as_they_were_left(conversation: Conversation) -> None:
    outer = conversation.say("q1", "a1")
    inner = conversation.say("q2", "a2")
    inner_second = conversation.replace(inner, "q2 v2", "a2 v2")
    outer_second = conversation.replace(outer, "q1 v2", "a1 v2")
    assert conversation.load_infos() == {"q1 v2": (2, 2)}
    conversation.choose(outer_second, 1)
    assert conversation.load_texts() == ["q1", "a1", "q2 v2", "a2 v2"]
    assert conversation.load_infos() == {"q1": (1, 2), "q2 v2": (2, 2)}
    conversation.choose(inner_second, 1)
    assert conversation.load_texts() == ["q1", "a1", "q2", "a2"]


def test_a_version_comes_back_although_a_turn_was_undone_between_versions(conversation: Conversation) -> None:
    first = conversation.say("q1", "a1")
    second = conversation.replace(first, "q1 v2", "a1 v2")
    conversation.say("b1", "b1 answer")
    conversation.choose(second, 1)
    conversation.say("c", "c answer")
    conversation.choose(first, 2)
    conversation.say("d", "d answer")
    conversation.store.undo(conversation.id, 2)  # hides b1 and d, on both sides of c in the log
    conversation.choose(second, 1)
    assert conversation.load_texts() == ["q1", "a1", "c", "c answer"]
    assert [each["content"] for each in conversation.store.load_transcript(conversation.id, limit=2)] == [
        "c",
        "c answer",
    ]
    conversation.choose(first, 2)
    assert conversation.store.redo(conversation.id).messages == 4
    assert conversation.load_texts() == ["q1 v2", "a1 v2", "b1", "b1 answer", "d", "d answer"]


def test_an_answer_to_an_earlier_message_stays_with_every_version(conversation: Conversation) -> None:
    store = conversation.store
    first = conversation.say("q1")
    second = conversation.say("q2")  # while q1 is being answered
    for seq, text in ((first, "a1"), (second, "a2")):
        store.append_to_transcript(conversation.id, {"role": "assistant", "content": text, "answers": seq})
    third = conversation.replace(second, "q2 v2", "a2 v2")
    assert conversation.load_texts() == ["q1", "a1", "q2 v2", "a2 v2"]
    conversation.choose(third, 1)
    assert conversation.load_texts() == ["q1", "q2", "a1", "a2"]


def test_a_summary_of_one_version_is_not_used_in_another(conversation: Conversation) -> None:
    first = conversation.say("q1", "a1")
    conversation.compact(first, [])
    second = conversation.say("q2", "a2")
    third = conversation.say("q3", "a3")
    conversation.compact(third, ["q1", "a1", "q2", "a2"])
    other = conversation.replace(second, "q2 v2", "a2 v2")
    assert conversation.find_summary() == []  # the summary from before the versions
    conversation.choose(other, 1)
    assert conversation.find_summary() == ["q1", "a1", "q2", "a2"]
    conversation.choose(second, 2)
    assert conversation.find_summary() == []


def test_a_summary_is_not_used_again_after_a_message_was_deleted(conversation: Conversation) -> None:
    first = conversation.say("q1", "a1")
    second = conversation.say("q2", "a2")
    third = conversation.say("q3", "a3")
    conversation.compact(third, ["q1", "a1", "q2", "a2"])
    other = conversation.replace(second, "q2 v2", "a2 v2")
    place, actor = message_edits.MessagePlace(conversation.no, first), message_edits.Actor("telegram", None)
    assert conversation.write(lambda tx: message_edits.delete_message(tx, place, actor, NOW, first_seq=first))
    conversation.choose(other, 1)
    assert conversation.find_summary() is None


def test_a_message_deleted_on_its_platform_comes_back_in_no_version(conversation: Conversation) -> None:
    fields = {"role": "user", "content": "secret", "platform_message_id": "m1"}
    first = conversation.store.append_to_transcript(conversation.id, fields)
    conversation.store.append_to_transcript(conversation.id, {"role": "assistant", "content": "a1"})
    conversation.write(lambda tx: versions.start_version(tx, conversation.no, first, NOW))
    second = conversation.store.append_to_transcript(conversation.id, fields)
    conversation.store.append_to_transcript(conversation.id, {"role": "assistant", "content": "a2"})
    place, actor = message_edits.MessagePlace(conversation.no, second), message_edits.Actor("telegram", None)
    assert conversation.write(lambda tx: message_edits.delete_message(tx, place, actor, NOW, first_seq=first))
    assert conversation.load_texts() == ["a2"]
    with pytest.raises(NothingToDo):
        conversation.write(lambda tx: versions.choose_version(tx, conversation.no, first, 1, NOW))


def test_lines_about_a_failed_answer_are_hidden_and_shown_with_their_version(conversation: Conversation) -> None:
    first = conversation.say("q1")
    conversation.write(lambda tx: events.append_event(tx, conversation.no, EventKind.TURN_FAILED, NOW, input_seq=first))

    def list_failures() -> int:
        page = conversation.read(lambda tx: transcript_pages.load_page(tx, conversation.no, before=None, limit=50))
        return sum(event.kind is EventKind.TURN_FAILED for event in page.events)

    second = conversation.replace(first, "q1", "a1", is_edit=False)
    assert list_failures() == 0
    conversation.choose(second, 1)
    assert list_failures() == 1


def test_a_fork_has_the_chosen_version_only(conversation: Conversation) -> None:
    first = conversation.say("q1", "a1")
    conversation.replace(first, "q1 v2", "a1 v2")
    fork = conversation.store.fork(conversation.id)
    assert [message["content"] for message in conversation.store.load_transcript(fork.id)] == ["q1 v2", "a1 v2"]
    copy_no = conversation.read(lambda tx: sessions.get(tx, fork.id).no)
    log = conversation.read(lambda tx: events.list_messages(tx, copy_no))
    assert conversation.read(lambda tx: versions.load_infos(tx, copy_no, log)) == {}


def test_search_finds_the_chosen_version_only(conversation: Conversation) -> None:
    first = conversation.say("pelican", "a1")
    second = conversation.replace(first, "heron", "a2")
    store = conversation.store
    assert [len(store.search(word)) for word in ("pelican", "heron")] == [0, 1]
    conversation.choose(second, 1)
    assert [len(store.search(word)) for word in ("pelican", "heron")] == [1, 0]


@pytest.mark.parametrize(
    ("number", "error", "text"),
    [
        (0, InvalidInput, "from 1 to 2"),
        (3, InvalidInput, "from 1 to 2"),
        (2, NothingToDo, "already in use"),
    ],
)
def test_a_version_that_is_not_there_is_refused(
    conversation: Conversation, number: int, error: type[Exception], text: str
) -> None:
    seq = conversation.say("q1", "a1")
    other = conversation.replace(seq, "q1 v2", "a1 v2")
    with pytest.raises(error, match=text):
        conversation.choose(other, number)
    assert conversation.load_texts() == ["q1 v2", "a1 v2"]


def test_only_a_visible_message_of_a_person_gets_versions(conversation: Conversation) -> None:
    seq = conversation.say("q1", "a1")
    conversation.replace(seq, "q1 v2")
    for wrong in (seq, seq + 1, 999):
        with pytest.raises(InvalidInput, match=f"number {wrong}"):
            conversation.replace(wrong, "no")


def test_versions_of_a_message_are_listed_with_their_answers(conversation: Conversation) -> None:
    seq = conversation.say("q1", "a1")
    other = conversation.replace(seq, "q1", "a2", is_edit=False)
    conversation.replace(other, "q1 v3")
    info = conversation.read(lambda tx: versions.find_last_info(tx, conversation.no))
    assert info is not None
    assert (info.number, info.count, info.has_edits) == (3, 3, True)
    listed = conversation.read(lambda tx: versions.list_versions(tx, conversation.no, info))
    assert [(each.number, each.is_chosen, each.question, each.answer) for each in listed] == [
        (1, False, "q1", "a1"),
        (2, False, "q1", "a2"),
        (3, True, "q1 v3", ""),
    ]


# ---- any sequence ------------------------------------------------------------------------------------------


@dataclass
class ModelGroup:
    """The versions of a message: what followed each of them when it was left, and what could be redone there."""

    chosen: int = 1
    count: int = 1
    left: dict[int, tuple[list[str], list[list[str]]]] = field(default_factory=dict)


class VersionMachine(RuleBasedStateMachine):
    """A conversation beside a list of texts, in which every version is a copy of the end of the list."""

    store: SessionStore
    run_number = 0

    def __init__(self) -> None:
        super().__init__()
        VersionMachine.run_number += 1
        self.conversation = Conversation(self.store, f"person-{self.run_number}")
        self.visible: list[str] = []
        self.redo_stack: list[list[str]] = []
        self.groups: dict[str, str] = {}  # by text of a question: the text of the first version
        self.by_group: dict[str, ModelGroup] = {}
        self.text_count = 0

    def make_texts(self, has_answer: bool) -> list[str]:
        self.text_count += 1
        return [f"q{self.text_count}", *([f"a{self.text_count}"] if has_answer else [])]

    @property
    def questions(self) -> list[str]:
        return [text for text in self.visible if text.startswith("q")]

    @rule(has_answer=st.booleans())
    def say(self, has_answer: bool) -> None:
        texts = self.make_texts(has_answer)
        self.conversation.say(*texts)
        self.visible += texts
        self.redo_stack = []

    @precondition(lambda self: self.questions)
    @rule(index=st.integers(0, 5), has_answer=st.booleans(), is_edit=st.booleans())
    def start_version(self, index: int, has_answer: bool, is_edit: bool) -> None:
        question = self.questions[-1 - index % len(self.questions)]
        position = self.visible.index(question)
        texts = self.make_texts(has_answer)
        self.conversation.replace(self.conversation.load_seqs()[question], *texts, is_edit=is_edit)
        first = self.groups.setdefault(question, question)
        group = self.by_group.setdefault(first, ModelGroup())
        group.left[group.chosen] = self.visible[position:], self.redo_stack
        group.count += 1
        group.chosen = group.count
        self.groups[texts[0]] = first
        self.visible, self.redo_stack = [*self.visible[:position], *texts], []

    @precondition(lambda self: any(text in self.groups for text in self.questions))
    @rule(index=st.integers(0, 5), step=st.integers(1, 5))
    def choose_version(self, index: int, step: int) -> None:
        candidates = [text for text in self.questions if text in self.groups]
        question = candidates[index % len(candidates)]
        position, group = self.visible.index(question), self.by_group[self.groups[question]]
        number = (group.chosen - 1 + step) % group.count + 1
        if number == group.chosen:
            return
        info = self.conversation.choose(self.conversation.load_seqs()[question], number)
        assert (info.number, info.count) == (number, group.count)
        group.left[group.chosen] = self.visible[position:], self.redo_stack
        tail, self.redo_stack = group.left[number]
        self.visible, group.chosen = [*self.visible[:position], *tail], number

    @precondition(lambda self: self.questions)
    @rule(turns=st.integers(1, 3))
    def undo(self, turns: int) -> None:
        question = self.questions[-min(turns, len(self.questions))]
        position = self.visible.index(question)
        self.conversation.store.undo(self.conversation.id, turns)
        self.redo_stack = [*self.redo_stack, self.visible[position:]]
        self.visible = self.visible[:position]

    @precondition(lambda self: self.redo_stack)
    @rule()
    def redo(self) -> None:
        self.conversation.store.redo(self.conversation.id)
        self.visible = self.visible + self.redo_stack[-1]
        self.redo_stack = self.redo_stack[:-1]

    @precondition(lambda self: len(self.questions) > 1)
    @rule(kept=st.integers(1, 3))
    def compact(self, kept: int) -> None:
        question = self.questions[-min(kept, len(self.questions) - 1)]
        covered = self.visible[: self.visible.index(question)]
        self.conversation.compact(self.conversation.load_seqs()[question], covered)

    @invariant()
    def model_page_and_transcript_agree(self) -> None:
        conversation = self.conversation
        assert conversation.load_texts() == self.visible
        assert conversation.load_page_texts(limit=50) == self.visible
        for limit in (1, 4):
            newest = conversation.store.load_transcript(conversation.id, limit=limit)
            assert [message["content"] for message in newest] == self.visible[-limit:]
        covered = conversation.find_summary() or []
        assert covered == self.visible[: len(covered)]
        assert conversation.load_view_texts() == self.visible[len(covered) :]

    @invariant()
    def every_version_can_be_chosen(self) -> None:
        shown = {
            text: (group.chosen, group.count)
            for text in self.questions
            if text in self.groups and (group := self.by_group[self.groups[text]]).count > 1
        }
        assert self.conversation.load_infos() == shown

    @invariant()
    def counters_match(self) -> None:
        session = self.conversation.store.get_session(self.conversation.id)
        assert session.message_count == len(self.visible)
        assert session.preview == (self.visible[-1] if self.visible else "")


@pytest.mark.slow
def test_any_sequence_of_changes_shows_one_path_and_loses_nothing(open_store: OpenStore, store_url: str) -> None:
    class Machine(VersionMachine):
        store = open_store()

    examples = settings().max_examples // (1 if store_url.startswith("sqlite:") else 4)
    run_state_machine_as_test(Machine, settings=settings(stateful_step_count=25, max_examples=examples))
