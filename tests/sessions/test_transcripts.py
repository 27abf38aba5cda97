"""Transcripts: messages are stored exactly and in order; undo, redo, rewrite, fork and usage."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from palaver import Message, SessionSource, SessionStore, TurnUsage
from palaver.core.engines.base import Read
from palaver.core.errors import InvalidInput, InvalidMessage, NothingToRedo, NothingToUndo, SessionNotFound
from palaver.sessions import log_table as events, table as sessions
from palaver.sessions.events import EventKind
from palaver.sessions.usage import CostStatus

if TYPE_CHECKING:
    from palaver.testing import FakeClock

Source = Callable[..., SessionSource]


@pytest.fixture
def session_id(store: SessionStore, dm: Source) -> str:
    return store.get_or_create_session(dm()).session_id


def append_turns(store: SessionStore, session_id: str, *turns: tuple[str, str]) -> None:
    for question, answer in turns:
        store.append_to_transcript(session_id, {"role": "user", "content": question})
        store.append_to_transcript(session_id, {"role": "assistant", "content": answer})


def load_texts(store: SessionStore, session_id: str, limit: int | None = None) -> list[Any]:
    return [message["content"] for message in store.load_transcript(session_id, limit)]


CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "Münster"}'}}

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "plain"},
    {"role": "system", "content": ""},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "42", "tool_call_id": "call_1", "tool_name": "look"},
    {"role": "assistant", "content": "so", "reasoning": "because", "finish_reason": "stop"},
    {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}]},
    {"role": "user", "content": "مرحبا 你好 नमस्ते"},
    {"role": "user", "content": " spaces \r\n\t kept "},
    {"role": "user", "content": "said by", "author": {"id": "7", "name": "Ada"}},
    {"role": "assistant", "content": "x", "unknown_to_us": {"kept": [1, None, True, "\x01"]}},
]


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_a_message_is_stored_exactly(store: SessionStore, session_id: str, message: dict[str, Any]) -> None:
    store.append_to_transcript(session_id, message)
    assert store.load_transcript(session_id) == [message]
    logged = store.load_events(session_id)[-1].message
    assert logged is not None
    assert logged.to_dict() == message


def test_messages_are_ordered_by_number_not_by_time(store: SessionStore, session_id: str, clock: FakeClock) -> None:
    for number in range(5):
        clock.advance(hours=-number)
        store.append_to_transcript(session_id, {"role": "user", "content": str(number)})
    assert load_texts(store, session_id) == ["0", "1", "2", "3", "4"]


def test_two_identical_messages_are_two_messages(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("again", "Done."), ("again", "Done."))
    assert load_texts(store, session_id) == ["again", "Done.", "again", "Done."]
    assert store.get_session(session_id).message_count == 4


@pytest.mark.both_engines
def test_several_messages_are_appended_in_one_transaction(store: SessionStore, session_id: str) -> None:
    good = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    last = store.append_to_transcript(session_id, [good, {"role": "tool", "content": "42", "tool_call_id": "call_1"}])
    assert [event.seq for event in store.load_events(session_id)][-1] == last
    with pytest.raises(InvalidMessage):
        store.append_to_transcript(session_id, [good, {"role": "narrator", "content": "no"}])
    assert len(store.load_transcript(session_id)) == 2


def test_a_limit_loads_only_the_last_messages(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, *[(f"q{n}", f"a{n}") for n in range(30)])
    assert load_texts(store, session_id, 3) == ["a28", "q29", "a29"]
    assert len(load_texts(store, session_id, 1000)) == 60


def test_a_platform_message_id_is_stored_with_its_message(store: SessionStore, session_id: str) -> None:
    store.append_to_transcript(session_id, {"role": "user", "content": "hi", "platform_message_id": 9001})
    message = store.load_events(session_id)[-1].message
    assert message is not None
    assert message.platform_message_id == "9001"
    assert store.load_transcript(session_id) == [{"role": "user", "content": "hi"}]


def test_a_message_may_be_a_string_or_a_message_value(store: SessionStore, dm: Source) -> None:
    recorded = store.record_user_message(dm(), "as text")
    store.append_to_transcript(recorded.session_id, "is an answer")
    store.append_to_transcript(recorded.session_id, Message("user", "as value"))
    roles = [(message["role"], message["content"]) for message in store.load_transcript(recorded.session_id)]
    assert roles == [("user", "as text"), ("assistant", "is an answer"), ("user", "as value")]


@pytest.mark.parametrize(
    ("invalid", "reason"),
    [
        ({"role": "narrator", "content": "x"}, "role.*narrator.*assistant"),
        ({"content": "x"}, "role"),
        ({"role": "user", "content": 7}, "content.*int"),
        ({"role": "assistant", "content": "x", "tool_calls": "no"}, "tool_calls"),
        ({"role": "user", "content": "x", "author": "Ada"}, "author"),
        ({"role": "user", "content": "x", "odd": float("nan")}, "JSON"),
        ({"role": "user", "content": "x", "odd": object()}, "JSON"),
        (7, "mapping"),
    ],
)
def test_an_invalid_message_is_refused(store: SessionStore, session_id: str, invalid: Any, reason: str) -> None:
    with pytest.raises(InvalidMessage, match=reason):
        store.append_to_transcript(session_id, [invalid])
    assert store.load_transcript(session_id) == []


def test_counters_and_preview_follow_the_messages(store: SessionStore, session_id: str, clock: FakeClock) -> None:
    append_turns(store, session_id, ("first question", "first   answer\nin two lines"))
    clock.advance(minutes=1)
    store.append_to_transcript(session_id, {"role": "tool", "content": "noise", "tool_call_id": "x"})
    session = store.get_session(session_id)
    assert session.message_count == 3
    assert session.preview == "first answer in two lines"
    assert session.last_message_at == clock.now()


def test_a_missing_session_is_refused_with_its_id(store: SessionStore) -> None:
    with pytest.raises(SessionNotFound, match="nowhere"):
        store.load_transcript("nowhere")
    with pytest.raises(SessionNotFound, match="nowhere"):
        store.append_to_transcript("nowhere", "hello?")


# -- undo, redo, rewrite, fork -------------------------------------------------------------------------------


def test_undo_hides_whole_turns_and_redo_shows_them_again(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"), ("two", "2"))
    store.append_to_transcript(session_id, {"role": "tool", "content": "3", "tool_call_id": "x"})
    before = store.get_session(session_id)
    undone = store.undo(session_id)
    assert (undone.turns, undone.messages, undone.prompt) == (1, 3, "two")
    assert load_texts(store, session_id) == ["one", "1"]
    session = store.get_session(session_id)
    assert (session.message_count, session.preview) == (2, "1")
    redone = store.redo(session_id)
    assert (redone.turns, redone.messages, redone.prompt) == (1, 3, "two")
    assert load_texts(store, session_id) == ["one", "1", "two", "2", "3"]
    assert store.get_session(session_id) == before


def test_several_undos_are_redone_in_reverse_order(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"), ("two", "2"), ("three", "3"), ("four", "4"))
    store.undo(session_id)
    store.undo(session_id, 2)
    assert load_texts(store, session_id) == ["one", "1"]
    store.redo(session_id)
    assert load_texts(store, session_id) == ["one", "1", "two", "2", "three", "3"]
    store.redo(session_id)
    assert len(load_texts(store, session_id)) == 8
    with pytest.raises(NothingToRedo):
        store.redo(session_id)


def test_undoing_more_turns_than_there_are_undoes_all(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"), ("two", "2"))
    assert store.undo(session_id, 99).turns == 2
    assert store.load_transcript(session_id) == []
    with pytest.raises(NothingToUndo):
        store.undo(session_id)
    assert store.get_session(session_id).message_count == 0
    assert [session.id for session in store.list_sessions()] == [session_id]


def test_after_a_new_message_nothing_can_be_redone(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"))
    store.undo(session_id)
    append_turns(store, session_id, ("other", "2"))
    with pytest.raises(NothingToRedo):
        store.redo(session_id)
    assert load_texts(store, session_id) == ["other", "2"]


def test_undone_messages_stay_in_the_log(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"))
    store.undo(session_id)
    log = store.load_events(session_id)
    hidden = [event.message.content for event in log if event.hidden and event.message]
    assert hidden == ["one", "1"]
    assert log[-1].kind is EventKind.UNDONE


def test_messages_before_the_first_turn_are_never_undone(store: SessionStore, session_id: str) -> None:
    store.append_to_transcript(session_id, {"role": "system", "content": "be kind"})
    append_turns(store, session_id, ("one", "1"))
    store.undo(session_id, 5)
    assert load_texts(store, session_id) == ["be kind"]


@pytest.mark.parametrize("turns", [0, -1, True, 1.5])
def test_an_invalid_number_of_turns_is_refused(store: SessionStore, session_id: str, turns: Any) -> None:
    with pytest.raises(InvalidInput, match="turns"):
        store.undo(session_id, turns)


def test_a_rewrite_hides_old_messages_and_appends_new_ones(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"), ("two", "2"))
    replacement = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "ONE"},
        {"role": "user", "content": "three"},
    ]
    store.rewrite_transcript(session_id, replacement)
    assert store.load_transcript(session_id) == replacement
    session = store.get_session(session_id)
    assert (session.message_count, session.preview) == (3, "three")
    stored = [event.message.content for event in store.load_events(session_id) if event.message]
    assert stored == ["one", "1", "two", "2", "ONE", "three"]  # hidden, not deleted; equal messages stay


def test_a_transcript_can_be_emptied_and_written_again(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"))
    original = store.load_transcript(session_id)
    store.rewrite_transcript(session_id, [])
    assert store.load_transcript(session_id) == []
    store.rewrite_transcript(session_id, original)
    assert store.load_transcript(session_id) == original


def test_a_failed_rewrite_changes_nothing(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"))
    log = store.load_events(session_id)
    with pytest.raises(InvalidMessage):
        store.rewrite_transcript(session_id, [{"role": "user", "content": "ok"}, {"role": "unknown", "content": "x"}])
    assert store.load_events(session_id) == log


def test_a_rewrite_does_not_count_as_activity(store: SessionStore, session_id: str, clock: FakeClock) -> None:
    append_turns(store, session_id, ("one", "1"))
    before = store.get_session(session_id)
    clock.advance(hours=5)
    store.rewrite_transcript(session_id, [{"role": "user", "content": "changed"}])
    after = store.get_session(session_id)
    assert (after.active_at, after.last_human_at) == (before.active_at, before.last_human_at)


@pytest.mark.both_engines
def test_a_fork_copies_the_turns_up_to_a_message(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"), ("two", "2"), ("three", "3"))
    store.undo(session_id)
    two = next(event.seq for event in store.load_events(session_id) if event.message and event.message.content == "two")
    full, partial = store.fork(session_id), store.fork(session_id, two)
    assert load_texts(store, full.id) == load_texts(store, partial.id) == ["one", "1", "two", "2"]
    assert load_texts(store, store.fork(session_id, two - 1).id) == ["one", "1"]
    assert (partial.message_count, partial.preview, partial.parent_id) == (4, "2", session_id)
    append_turns(store, partial.id, ("only here", "yes"))
    assert load_texts(store, session_id) == ["one", "1", "two", "2"]


def append_overlapping_turns(store: SessionStore, session_id: str) -> dict[str, int]:
    """Append a question that arrives during the answer to another one; return the number of each message."""
    seqs: dict[str, int] = {}
    for role, text, answered in [
        ("user", "one", None),
        ("user", "two", None),
        ("tool", "look", "one"),
        ("assistant", "1", "one"),
        ("assistant", "2", "two"),
    ]:
        answers = {} if answered is None else {"answers": seqs[answered]}
        tool = {"tool_call_id": "x"} if role == "tool" else {}
        store.append_to_transcript(session_id, {"role": role, "content": text} | tool | answers)
        seqs[text] = store.load_events(session_id)[-1].seq
    return seqs


def test_undo_keeps_the_answer_to_an_earlier_message_that_was_stored_later(
    store: SessionStore, session_id: str
) -> None:
    append_overlapping_turns(store, session_id)
    assert (store.undo(session_id).messages, load_texts(store, session_id)) == (2, ["one", "look", "1"])
    assert load_texts(store, session_id, 2) == ["look", "1"]
    assert store.get_session(session_id).preview == "1"
    append_turns(store, session_id, ("three", "3"))
    store.undo(session_id)
    assert load_texts(store, session_id, 50) == ["one", "look", "1"]
    store.undo(session_id)
    assert store.load_transcript(session_id) == []
    store.redo(session_id)
    store.redo(session_id)
    assert load_texts(store, session_id) == ["one", "look", "1", "three", "3"]


@pytest.mark.parametrize("at", ["one", "look", "1"])
def test_a_fork_copies_the_answer_that_was_stored_after_a_later_message(
    store: SessionStore, session_id: str, at: str
) -> None:
    seqs = append_overlapping_turns(store, session_id)
    fork = store.fork(session_id, seqs[at])
    assert load_texts(store, fork.id) == ["one", "look", "1"]
    answer = next(event for event in store.load_events(fork.id) if event.message and event.message.content == "1")
    assert answer.message is not None
    assert answer.message.extra["answers"] == 1
    assert load_texts(store, store.fork(session_id, seqs["2"]).id) == ["one", "two", "look", "1", "2"]


def test_the_line_of_a_fork_stands_after_the_copied_messages(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("one", "1"), ("two", "2"))
    fork = store.fork(session_id)
    append_turns(store, fork.id, ("only here", "yes"))
    log = store.load_events(fork.id)
    assert [event.message.content if event.message else event.kind for event in log] == [
        *("one", "1", "two", "2"),
        EventKind.STARTED,
        *("only here", "yes"),
    ]
    assert log[4].facts == {"reason": "fork", "previous": session_id, "copied_count": 4}


@pytest.mark.both_engines
@pytest.mark.parametrize(("limit", "value"), [("MAX_CHANGED_EVENTS", 3), ("MAX_CHANGED_BYTES", 150)])
def test_a_fork_of_a_very_long_conversation_has_the_newest_messages_and_says_so(
    store: SessionStore, session_id: str, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    append_turns(store, session_id, ("one", "1" * 200), ("two", "2"), ("three", "3"))
    monkeypatch.setattr(events, limit, value)
    fork = store.fork(session_id)
    texts = load_texts(store, fork.id)
    assert texts == ["2", "three", "3"] if limit == "MAX_CHANGED_EVENTS" else ["two", "2", "three", "3"]
    assert store.load_events(fork.id)[-1].facts["is_shortened"] is True
    assert load_texts(store, session_id) == ["one", "1" * 200, "two", "2", "three", "3"]
    answer = next(event for event in store.load_events(fork.id) if event.message and event.message.content == "3")
    assert answer.message is not None
    assert answer.message.extra.get("answers") in {None, texts.index("three") + 1}


@pytest.mark.parametrize("at", [0, 1, 999])
def test_a_fork_at_a_missing_message_is_refused(store: SessionStore, session_id: str, at: int) -> None:
    append_turns(store, session_id, ("one", "1"))
    with pytest.raises(InvalidInput, match=str(at)):
        store.fork(session_id, at)


# -- usage ---------------------------------------------------------------------------------------------------


def test_the_usage_of_turns_is_added_up(store: SessionStore, session_id: str) -> None:
    store.update_session(
        session_id, turn_id="1", model="gpt", provider="openai", input_tokens=10, output_tokens=5,
        cache_read_tokens=3, cache_write_tokens=2, reasoning_tokens=1, cost="0.0125", last_prompt_tokens=15,
    )  # fmt: skip
    store.update_session(session_id, turn_id="2", input_tokens=1, cost=Decimal("0.000000001"), cost_status="actual")
    session = store.get_session(session_id)
    used = session.usage
    assert (used.input_tokens, used.output_tokens, used.cache_read_tokens) == (11, 5, 3)
    assert (used.cache_write_tokens, used.reasoning_tokens, used.total_tokens) == (2, 1, 16)
    assert used.cost == Decimal("0.012500001")
    assert used.cost_status is CostStatus.ESTIMATED
    assert (session.model, session.model_provider, session.last_prompt_tokens) == ("gpt", "openai", 15)


def test_a_turn_is_counted_only_once(store: SessionStore, session_id: str) -> None:
    usage = TurnUsage(turn_id="t", model="m", input_tokens=10, cost="1", last_prompt_tokens=4)
    store.append_to_transcript(session_id, "answer", usage=usage)
    before = store.get_session(session_id)
    store.update_session(session_id, usage)
    store.update_session(session_id, turn_id="t", model="m", input_tokens=99, cost="5", last_prompt_tokens=9)
    assert store.get_session(session_id) == before
    store.update_session(session_id, turn_id="t", model="another", input_tokens=1)  # the turn's second model
    assert store.get_session(session_id).usage.input_tokens == 11


def test_an_answer_is_stored_with_its_usage(store: SessionStore, session_id: str) -> None:
    usage = TurnUsage(turn_id="t", model="m", input_tokens=10, output_tokens=2, cost="0.5", cost_source="list")
    store.append_to_transcript(session_id, ["one", "two"], usage=usage)
    session = store.get_session(session_id)
    assert (session.message_count, session.usage.input_tokens, session.model) == (2, 10, "m")
    assert (session.usage.cost, session.usage.cost_source) == (Decimal("0.5"), "list")


def test_fields_that_are_not_given_do_not_change(store: SessionStore, session_id: str) -> None:
    store.update_session(session_id, turn_id="1", model="gpt", input_tokens=10, cost="1", last_prompt_tokens=7)
    before = store.get_session(session_id)
    store.update_session(session_id, last_prompt_tokens=0)
    after = store.get_session(session_id)
    assert after.usage == before.usage
    assert (after.model, after.last_prompt_tokens) == ("gpt", 0)


def test_an_unknown_cost_is_not_zero(store: SessionStore, session_id: str) -> None:
    store.update_session(session_id, input_tokens=10)
    used = store.get_session(session_id).usage
    assert (used.cost, used.cost_status, used.unpriced_turns) == (None, CostStatus.UNKNOWN, 1)
    store.update_session(session_id, input_tokens=10, cost=0, cost_status="actual")
    used = store.get_session(session_id).usage
    assert (used.cost, used.cost_status, used.unpriced_turns) == (Decimal(0), CostStatus.ACTUAL, 1)


def test_usage_can_be_added_by_the_key_of_a_lane(store: SessionStore, dm: Source) -> None:
    entry = store.get_or_create_session(dm())
    store.update_session(entry.session_key, input_tokens=5)
    assert store.get_session(entry.session_id).usage.input_tokens == 5
    with pytest.raises(SessionNotFound):
        store.update_session("agent:main:telegram:dm:unknown", input_tokens=5)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"input_tokens": -1}, "input_tokens"),
        ({"input_tokens": "many"}, "input_tokens"),
        ({"cost": "cheap", "input_tokens": 1}, "cost"),
        ({"cost": -1}, "cost"),
        ({"cost": "NaN"}, "cost"),
        ({"cost_status": "guess"}, "cost_status.*estimated"),
        ({"tokens": 1}, "tokens.*input_tokens"),
    ],
)
def test_invalid_usage_is_refused(store: SessionStore, session_id: str, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        store.update_session(session_id, **fields)
    assert store.get_session(session_id).usage.input_tokens == 0


# -- concurrent callers --------------------------------------------------------------------------------------


async def test_the_operations_of_aio_are_awaited(store: SessionStore, dm: Source) -> None:
    recorded = await store.aio.record_user_message(dm(), "hello")
    await store.aio.append_to_transcript(recorded.session_id, "hi")
    assert await store.aio.load_transcript(recorded.session_id) == store.load_transcript(recorded.session_id)
    assert (await store.aio.get_or_create_session(dm())).session_id == recorded.session_id
    assert [hit.seq for hit in await store.aio.search("hello")] == [recorded.seq]
    person = await store.aio.get_or_create_person(dm())
    view = store.aio.seen_by(person.principal)
    assert [session.id for session in await view.list()] == [recorded.session_id]
    with pytest.raises(SessionNotFound):
        await store.aio.load_transcript("nowhere")


async def test_many_tasks_lose_nothing(store: SessionStore, dm: Source) -> None:
    ids = [store.get_or_create_session(dm(f"user{n}")).session_id for n in range(8)]
    await asyncio.gather(*(store.aio.append_to_transcript(ids[n % 8], f"m{n}") for n in range(160)))
    for index, session_id in enumerate(ids):
        assert set(load_texts(store, session_id)) == {f"m{n}" for n in range(160) if n % 8 == index}


def test_many_threads_lose_nothing(store: SessionStore, dm: Source) -> None:
    session_id = store.get_or_create_session(dm()).session_id
    errors: list[Exception] = []

    def work(name: int) -> None:
        try:
            for number in range(20):
                store.append_to_transcript(session_id, f"{name}.{number}")
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    stored = load_texts(store, session_id)
    assert sorted(stored) == sorted(f"{name}.{number}" for name in range(8) for number in range(20))
    for name in range(8):
        assert [text for text in stored if text.startswith(f"{name}.")] == [f"{name}.{number}" for number in range(20)]
    assert [event.seq for event in store.load_events(session_id)] == list(range(1, 162))


@pytest.mark.both_engines
@pytest.mark.parametrize("is_undone", [False, True])
def test_a_limit_returns_the_end_of_the_same_transcript(store: SessionStore, dm: Source, is_undone: bool) -> None:
    session_id = store.record_user_message(dm(), "one").session_id
    store.append_to_transcript(session_id, [{"role": "tool", "content": "2", "tool_call_id": "a"}, "three"])
    store.rename_session(session_id, "A title")  # an entry between the messages
    store.record_user_message(dm(), "four")
    if is_undone:
        store.undo(session_id)
    transcript = store.load_transcript(session_id)
    assert len(transcript) == (3 if is_undone else 4)
    for limit in range(1, 6):
        assert store.load_transcript(session_id, limit=limit) == transcript[-limit:]
    with pytest.raises(SessionNotFound):
        store.load_transcript("20261115_081200_1a2b3c4d", limit=3)


@pytest.mark.both_engines
def test_the_sizes_of_the_first_events_are_those_of_their_text(store: SessionStore, session_id: str) -> None:
    append_turns(store, session_id, ("héllo", "x" * 100_000), ("", "left out"))
    session_no = store.engine.run(Read(lambda tx: sessions.get_no(tx, session_id)))
    _started, *sizes = store.engine.run(Read(lambda tx: events.list_sizes(tx, session_no, 4)))
    assert [(each.seq, each.byte_count) for each in sizes] == [(2, 6), (3, 100_000), (4, 0)]
