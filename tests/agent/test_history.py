"""Tests of building the messages for a model: order, pairs of calls and results, content, and stability."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from palaver.agent.history import (
    INTERRUPTED_SUFFIX,
    MISSING_RESULT_TEXT,
    OMITTED_NOTICE,
    SUMMARY_HEADING,
    build_messages,
)
from palaver.sessions.events import Compaction, Event, EventKind
from palaver.sessions.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 11, 15, tzinfo=UTC)
MessageDict = dict[str, Any]


def make_event(seq: int, message: MessageDict, *, hidden: bool = False) -> Event:
    return Event(seq=seq, kind=EventKind.MESSAGE, at=NOW, message=Message.from_dict(message), hidden=hidden)


def make_log(*messages: MessageDict, first: int = 2) -> list[Event]:
    return [make_event(seq, message) for seq, message in enumerate(messages, first)]


def make_user(text: Any, **more: Any) -> MessageDict:
    return {"role": "user", "content": text, **more}


def make_answer(text: Any, to: int | None = None, **more: Any) -> MessageDict:
    return {"role": "assistant", "content": text, **({} if to is None else {"answers": to}), **more}


def make_call(call_id: str, name: str = "look") -> MessageDict:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def make_calls(*calls: str, to: int | None = None, text: str | None = None) -> MessageDict:
    return make_answer(text, to, tool_calls=[make_call(call_id) for call_id in calls])


def make_result(call_id: str, text: str, to: int | None = None) -> MessageDict:
    more = {} if to is None else {"answers": to}
    return {"role": "tool", "tool_call_id": call_id, "tool_name": "look", "content": text, **more}


def build(events: Sequence[Event], input_seq: int | None = None, **options: Any) -> list[MessageDict]:
    options = {"compaction": None, "shared": False, **options}
    return build_messages(events, input_seq=input_seq or max((event.seq for event in events), default=0), **options)


def build_texts(events: Sequence[Event], input_seq: int | None = None, **options: Any) -> list[Any]:
    return [message["content"] for message in build(events, input_seq, **options)]


# -- order ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "input_seq", "texts"),
    [
        pytest.param([make_user("a")], 2, "a", id="one question"),
        pytest.param([make_user("a"), make_answer("A", 2), make_user("b")], 4, "a A b", id="one after the other"),
        pytest.param([make_user("a"), make_answer("A"), make_user("b")], 4, "a A b", id="without numbers"),
        pytest.param([make_user("a"), make_user("b"), make_answer("A", 2)], 3, "a A b", id="asked during an answer"),
        pytest.param(
            [make_user("a"), make_user("b")], 2, "a", id="a queued message is not shown to the turn before it"
        ),
        pytest.param(
            [make_user("a"), make_user("b"), make_user("c"), make_answer("A", 2), make_answer("B", 3)],
            4,
            "a A b B c",
            id="two are queued",
        ),
        pytest.param(
            [make_user("a"), make_user("b"), make_user("c"), make_answer("A", 2)],
            3,
            "a A b",
            id="the second queued message is not shown yet",
        ),
        pytest.param(
            [make_user("a"), make_user("b"), make_answer("AB", 3), make_user("c")],
            5,
            "a b AB c",
            id="answered together",
        ),
        pytest.param([make_user("a"), make_user("b")], 3, "a b", id="to be answered together"),
        pytest.param(
            [make_user("a"), make_user("s"), make_answer("A", 2), make_answer("S", 3), make_user("b")],
            6,
            "a A s S b",
            id="steered on the way",
        ),
        pytest.param(
            [make_user("a"), make_user("b"), make_user("c")], 4, "a b c", id="turns that failed left no answer"
        ),
        pytest.param(
            [make_user("a"), make_answer("news"), make_answer("A", 2), make_user("b")],
            5,
            "a A news b",
            id="posted during an answer",
        ),
        pytest.param([make_user("a"), make_answer("news")], 2, "a", id="posted after the question"),
        pytest.param(
            [make_user("a"), make_user("q"), make_user("s"), make_answer("A", 2), make_answer("S", 4)],
            3,
            "a A s S q",
            id="overtaken by steering, and now to be answered",
        ),
        pytest.param(
            [
                make_user("a"),
                make_user("q"),
                make_user("s"),
                make_answer("A", 2),
                make_answer("S", 4),
                make_answer("Q", 3),
                make_user("b"),
            ],
            8,
            "a A s S q Q b",
            id="overtaken by steering, and answered since",
        ),
        pytest.param(
            [make_user("a"), make_user("a"), make_answer("A"), make_answer("A")],
            5,
            "a a A A",
            id="the same twice is two",
        ),
        pytest.param(
            [make_user("a"), make_answer("A", 77), make_user("b")], 4, "a A b", id="a number from another log"
        ),
        pytest.param(
            [make_user("a"), make_answer("A", 1), make_user("b")], 4, "a A b", id="a number that names no message"
        ),
        pytest.param(
            [make_user("a"), make_answer("A"), make_answer("B", 3), make_user("b")],
            5,
            "a A B b",
            id="an answer to an answer",
        ),
        pytest.param(
            [make_user("a"), make_answer("A", answers="2"), make_user("b")], 4, "a A b", id="no number at all"
        ),
    ],
)
def test_messages_are_in_the_order_in_which_the_agent_saw_them(
    messages: list[MessageDict], input_seq: int, texts: str
) -> None:
    assert build_texts(make_log(*messages), input_seq) == texts.split()


def test_hidden_messages_and_other_events_are_left_out() -> None:
    events = [
        make_event(2, make_user("a")),
        make_event(3, make_answer("A", 2), hidden=True),
        make_event(4, make_user("b")),
    ]
    renamed = Event(seq=5, kind=EventKind.RENAMED, at=NOW, facts={"title": "x"})
    assert build_texts([*events, renamed]) == ["a", "b"]


def test_an_empty_log_gives_no_messages() -> None:
    assert build([]) == []


# -- calls and results ---------------------------------------------------------------------------------------


def summarize(messages: list[MessageDict]) -> list[str]:
    """Describe each message in short: a call as its ids, a result as id=text."""
    short = []
    for message in messages:
        if "tool_calls" in message:
            short.append("+".join(call["id"] for call in message["tool_calls"]))
        elif message["role"] == "tool":
            short.append(f"{message['tool_call_id']}={message['content']}")
        else:
            short.append(message["content"])
    return short


@pytest.mark.parametrize(
    ("messages", "summary"),
    [
        pytest.param([make_calls("1"), make_result("1", "r")], ["1", "1=r"], id="a pair"),
        pytest.param(
            [make_calls("1"), make_user("x")], ["1", f"1={MISSING_RESULT_TEXT}", "x"], id="a call without a result"
        ),
        pytest.param([make_user("x"), make_result("1", "r")], ["x"], id="a result without a call"),
        pytest.param(
            [make_result("1", "r"), make_calls("1")], ["1", f"1={MISSING_RESULT_TEXT}"], id="a result before its call"
        ),
        pytest.param(
            [make_calls("1"), make_user("x"), make_result("1", "r")],
            ["1", "1=r", "x"],
            id="a message between call and result",
        ),
        pytest.param(
            [make_calls("1", "2"), make_result("2", "b"), make_result("1", "a")],
            ["1+2", "1=a", "2=b"],
            id="in another order",
        ),
        pytest.param(
            [make_calls("1", "2"), make_result("2", "b")], ["1+2", f"1={MISSING_RESULT_TEXT}", "2=b"], id="one of two"
        ),
        pytest.param(
            [make_calls("1"), make_result("1", "a"), make_result("1", "b")], ["1", "1=a"], id="a result twice"
        ),
        pytest.param(
            [make_calls("1"), make_calls("1"), make_result("1", "r")],
            ["1", f"1={MISSING_RESULT_TEXT}", "1", "1=r"],
            id="an id used again is the newer call's",
        ),
        pytest.param(
            [make_calls("1", "1"), make_result("1", "a"), make_result("1", "b")],
            ["1+1", "1=a", "1=b"],
            id="an id twice in a call",
        ),
        pytest.param([make_answer("x", tool_calls=["what", {"name": "no id"}])], ["x"], id="invalid calls"),
        pytest.param([make_answer(None, tool_calls=["what"])], [], id="only invalid calls"),
    ],
)
def test_each_call_is_followed_by_its_result(messages: list[MessageDict], summary: list[str]) -> None:
    assert summarize(build(make_log(*messages))) == summary


def test_a_missing_result_has_the_name_of_its_tool() -> None:
    assert build(make_log(make_calls("1")))[1] == {
        "role": "tool",
        "tool_call_id": "1",
        "tool_name": "look",
        "content": MISSING_RESULT_TEXT,
    }


# -- content -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_in_a_shared_conversation_a_message_starts_with_its_author(shared: bool) -> None:
    events = make_log(make_user("hi", author={"id": "7", "name": "Ada [admin]"}), make_user("ho"))
    assert build_texts(events, shared=shared) == ["[Ada admin] hi", "[someone] ho" if shared else "ho"]


def test_a_message_with_parts_gets_its_author_as_a_part() -> None:
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    [message] = build(make_log(make_user([picture], author={"name": "Ada"})))
    assert message["content"] == [{"type": "text", "text": "[Ada] "}, picture]


def test_an_interrupted_answer_is_marked() -> None:
    events = make_log(
        make_answer("half a", interrupted=True),
        make_answer([{"type": "text", "text": "half"}], interrupted=True),
        make_answer(None, tool_calls=[make_call("1")], interrupted=True),
        make_answer("complete", interrupted=False),
    )
    half, parts, call_only, _, complete = build_texts(events)
    assert half == f"half a{INTERRUPTED_SUFFIX}"
    assert parts[-1] == {"type": "text", "text": INTERRUPTED_SUFFIX}
    assert call_only == INTERRUPTED_SUFFIX.strip()
    assert complete == "complete"


@pytest.mark.parametrize("content", [None, "", " \n", []])
@pytest.mark.parametrize("interrupted", [True, False])
def test_an_empty_answer_is_left_out(content: Any, interrupted: bool) -> None:
    assert build_texts(make_log(make_user("a"), make_answer(content, 2, interrupted=interrupted), make_user("b"))) == [
        "a",
        "b",
    ]


def test_messages_have_only_the_fields_that_a_model_needs() -> None:
    events = make_log(
        make_user("a", author={"id": "7", "name": "Ada"}, platform_message_id="99", forwarded=True),
        make_calls("1", to=2) | {"reasoning": "hm", "finish_reason": "tool"},
        make_result("1", "r", 2) | {"is_error": True, "duration_ms": 40},
        make_answer("A", 2, reasoning="so", interrupted=True),
    )
    assert [set(message) for message in build(events)] == [
        {"role", "content"},
        {"role", "content", "tool_calls"},
        {"role", "content", "tool_call_id", "tool_name", "is_error"},
        {"role", "content"},
    ]


def test_characters_that_no_provider_accepts_are_replaced() -> None:
    events = make_log(
        make_user("half \ud83d"), make_user(["zero \0", {"type": "text", "text": "\ud83d"}]), make_answer("\udc00")
    )
    json.dumps(build(events), ensure_ascii=False).encode()
    assert "\0" not in str(build(events))


# -- summaries and omitted messages --------------------------------------------------------------------------


def test_a_summary_comes_first() -> None:
    compaction = Compaction(seq=9, summary="They spoke of soup.", first_kept_seq=4, message_count=2)
    assert build(make_log(make_user("b"), first=4), compaction=compaction) == [
        make_user(f"{SUMMARY_HEADING}\nThey spoke of soup."),
        make_user("b"),
    ]


def test_omitted_messages_are_mentioned() -> None:
    compaction = Compaction(seq=9, summary="Soup.", first_kept_seq=4, message_count=2)
    assert build_texts(make_log(make_user("b")), is_truncated=True) == [OMITTED_NOTICE, "b"]
    assert build_texts(make_log(make_user("b")), is_truncated=True, compaction=compaction) == [
        f"{SUMMARY_HEADING}\nSoup.",
        OMITTED_NOTICE,
        "b",
    ]
    assert "search_conversations" in OMITTED_NOTICE


# -- from turn to turn ---------------------------------------------------------------------------------------


@dataclass
class SimulatedGateway:
    """Runs turns like a gateway: one at a time, first come first served, while new messages arrive."""

    shared: bool
    events: list[Event] = field(default_factory=list)
    queued_seqs: list[int] = field(default_factory=list)
    steering_seqs: list[int] = field(default_factory=list)
    answered_seq: int | None = None  # the message that the running turn answers
    turn_messages: list[MessageDict] = field(default_factory=list)  # of the running turn; stored when it ends
    model_messages: list[MessageDict] = field(default_factory=list)  # everything that the model has seen and said
    call_count: int = 0

    def append(self, message: MessageDict) -> int:
        self.events.append(make_event(len(self.events) + 2, message))
        return self.events[-1].seq

    def build_view(self, events: Sequence[Event], input_seq: int) -> list[MessageDict]:
        return build_messages(events, input_seq=input_seq, compaction=None, shared=self.shared)

    def ask(self, text: str, steers: bool) -> None:
        seq = self.append(make_user(text, author={"name": "Ada"} if self.shared else None))
        later_seqs = {event.seq for event in self.events if event.seq > (self.answered_seq or 0)}
        can_steer = self.answered_seq is not None and not later_seqs - {seq, *self.steering_seqs}
        (self.steering_seqs if steers and can_steer else self.queued_seqs).append(seq)

    def post_answer(self, text: str) -> None:
        self.append(make_answer(text))

    def start_turn(self, max_messages: int) -> None:
        if self.answered_seq is None and self.queued_seqs:
            taken, self.queued_seqs = self.queued_seqs[:max_messages], self.queued_seqs[max_messages:]
            self.answered_seq = taken[-1]
            view = self.build_view(self.events, self.answered_seq)
            assert view[: len(self.model_messages)] == self.model_messages
            assert json.dumps(view).startswith(json.dumps(self.model_messages)[:-1])
            self.model_messages = view

    def answer(self, text: str) -> None:
        if self.answered_seq is not None:
            self.add_turn_messages(make_answer(text, self.answered_seq))

    def use_tool(self, text: str) -> None:
        if self.answered_seq is not None:
            self.call_count += 1
            self.add_turn_messages(
                make_calls(str(self.call_count), to=self.answered_seq),
                make_result(str(self.call_count), text, self.answered_seq),
            )
            if self.steering_seqs:
                self.answered_seq = self.steering_seqs[-1]
                self.model_messages += self.build_view(
                    [event for event in self.events if event.seq in self.steering_seqs], self.answered_seq
                )
                self.steering_seqs.clear()

    def add_turn_messages(self, *messages: MessageDict) -> None:
        self.turn_messages += messages
        bare = [{key: value for key, value in message.items() if key != "answers"} for message in messages]
        self.model_messages += self.build_view(make_log(*bare), 99)

    def end_turn(self) -> None:
        if self.answered_seq is not None:
            for message in self.turn_messages:
                self.append(message)
            self.turn_messages.clear()
            self.answered_seq = None
            self.queued_seqs, self.steering_seqs = [*self.steering_seqs, *self.queued_seqs], []


word = st.sampled_from(["a", "b", " ", "", "same"])
step = st.one_of(
    st.tuples(st.just("ask"), word, st.booleans()),
    st.tuples(st.sampled_from(["answer", "use_tool"]), word),
    st.tuples(st.just("post_answer"), word),
    st.tuples(st.just("start_turn"), st.integers(1, 3)),
    st.tuples(st.just("end_turn")),
)


@settings(max_examples=3 * settings().max_examples)
@given(st.booleans(), st.lists(step, max_size=60))
def test_each_prompt_starts_with_the_previous_prompt_and_its_answer(shared: bool, steps: list[tuple[Any, ...]]) -> None:
    gateway = SimulatedGateway(shared)
    for name, *arguments in [*steps, ("end_turn",), ("ask", "last", False), ("start_turn", 99)]:
        getattr(gateway, name)(*arguments)
    assert gateway.model_messages[-1]["content"].endswith("last")


messages = st.one_of(
    st.builds(make_user, word),
    st.builds(make_answer, word, st.none() | st.integers(0, 30)),
    st.builds(
        lambda ids, to: make_calls(*ids, to=to), st.lists(st.sampled_from("123")), st.none() | st.integers(0, 30)
    ),
    st.builds(make_result, st.sampled_from("1234"), word, st.none() | st.integers(0, 30)),
)


@given(st.lists(messages, max_size=30), st.integers(1, 35), st.booleans())
def test_any_log_becomes_messages_that_a_model_accepts(log: list[MessageDict], input_seq: int, shared: bool) -> None:
    open_calls: list[str] = []
    for message in build(make_log(*log), input_seq, shared=shared):
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
        else:
            assert open_calls == []
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
            assert message["content"] or open_calls or message["role"] == "user"
    assert open_calls == []


@given(st.lists(messages, max_size=30))
def test_every_user_message_appears_exactly_once(log: list[MessageDict]) -> None:
    events = make_log(*log)
    users = {event.seq for event in events if event.message is not None and event.message.role == "user"}
    numbered = [
        replace(event, message=replace(event.message, content=f"#{event.seq}"))
        if event.message is not None and event.seq in users
        else event
        for event in events
    ]
    texts = [text for text in build_texts(numbered, 99) if text in {f"#{seq}" for seq in users}]
    assert sorted(texts) == sorted(f"#{seq}" for seq in users)
