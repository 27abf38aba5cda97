"""A conversation as a model sees it: in order, paired, with nothing that is not its business, the same every time."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.agent.history import INTERRUPTED, LEFT_OUT, NO_RESULT, SUMMARY, project
from palaver.domain.compaction import Compaction
from palaver.domain.events import Event, EventKind
from palaver.domain.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 11, 15, tzinfo=UTC)
Said = dict[str, Any]


def event(seq: int, message: Said, *, hidden: bool = False) -> Event:
    return Event(seq=seq, kind=EventKind.MESSAGE, at=NOW, message=Message.from_dict(message), hidden=hidden)


def log(*messages: Said, first: int = 2) -> list[Event]:
    return [event(seq, message) for seq, message in enumerate(messages, first)]


def user(text: Any, **more: Any) -> Said:
    return {"role": "user", "content": text, **more}


def answer(text: Any, to: int | None = None, **more: Any) -> Said:
    return {"role": "assistant", "content": text, **({} if to is None else {"answers": to}), **more}


def call(identity: str, name: str = "look") -> Said:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": "{}"}}


def calling(*calls: str, to: int | None = None, text: str | None = None) -> Said:
    return answer(text, to, tool_calls=[call(each) for each in calls])


def result(identity: str, text: str, to: int | None = None) -> Said:
    more = {} if to is None else {"answers": to}
    return {"role": "tool", "tool_call_id": identity, "tool_name": "look", "content": text, **more}


def seen(events: Sequence[Event], input_seq: int | None = None, **options: Any) -> list[Said]:
    options = {"compaction": None, "shared": False, **options}
    return project(events, input_seq=input_seq or max((each.seq for each in events), default=0), **options)


def texts(events: Sequence[Event], input_seq: int | None = None, **options: Any) -> list[Any]:
    return [message["content"] for message in seen(events, input_seq, **options)]


# -- order ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "input_seq", "shown"),
    [
        pytest.param([user("a")], 2, "a", id="one question"),
        pytest.param([user("a"), answer("A", 2), user("b")], 4, "a A b", id="one after the other"),
        pytest.param([user("a"), answer("A"), user("b")], 4, "a A b", id="without numbers"),
        pytest.param([user("a"), user("b"), answer("A", 2)], 3, "a A b", id="asked during an answer"),
        pytest.param([user("a"), user("b")], 2, "a", id="what waits is not shown to the turn before it"),
        pytest.param(
            [user("a"), user("b"), user("c"), answer("A", 2), answer("B", 3)], 4, "a A b B c", id="two wait in line"
        ),
        pytest.param([user("a"), user("b"), user("c"), answer("A", 2)], 3, "a A b", id="and the second not yet"),
        pytest.param([user("a"), user("b"), answer("AB", 3), user("c")], 5, "a b AB c", id="answered together"),
        pytest.param([user("a"), user("b")], 3, "a b", id="to be answered together"),
        pytest.param(
            [user("a"), user("s"), answer("A", 2), answer("S", 3), user("b")], 6, "a A s S b", id="steered on the way"
        ),
        pytest.param([user("a"), user("b"), user("c")], 4, "a b c", id="turns that failed left no answer"),
        pytest.param(
            [user("a"), answer("news"), answer("A", 2), user("b")], 5, "a A news b", id="posted during an answer"
        ),
        pytest.param([user("a"), answer("news")], 2, "a", id="posted after the question"),
        pytest.param(
            [user("a"), user("q"), user("s"), answer("A", 2), answer("S", 4)],
            3,
            "a A s S q",
            id="passed over by steering, and now to be answered",
        ),
        pytest.param(
            [user("a"), user("q"), user("s"), answer("A", 2), answer("S", 4), answer("Q", 3), user("b")],
            8,
            "a A s S q Q b",
            id="passed over by steering, and answered since",
        ),
        pytest.param([user("a"), user("a"), answer("A"), answer("A")], 5, "a a A A", id="the same twice is two"),
        pytest.param([user("a"), answer("A", 77), user("b")], 4, "a A b", id="a number from another log"),
        pytest.param([user("a"), answer("A", 1), user("b")], 4, "a A b", id="a number that names no message"),
        pytest.param([user("a"), answer("A"), answer("B", 3), user("b")], 5, "a A B b", id="an answer to an answer"),
        pytest.param([user("a"), answer("A", answers="2"), user("b")], 4, "a A b", id="no number at all"),
    ],
)
def test_the_order_is_the_one_in_which_the_agent_came_to_know(said: list[Said], input_seq: int, shown: str) -> None:
    assert texts(log(*said), input_seq) == shown.split()


def test_what_was_hidden_is_not_seen() -> None:
    events = [event(2, user("a")), event(3, answer("A", 2), hidden=True), event(4, user("b"))]
    noted = Event(seq=5, kind=EventKind.RENAMED, at=NOW, facts={"title": "x"})
    assert texts([*events, noted]) == ["a", "b"]


def test_an_empty_log_is_an_empty_conversation() -> None:
    assert seen([]) == []


# -- calls and results ---------------------------------------------------------------------------------------


def shape(messages: list[Said]) -> list[str]:
    """Messages in short: a call as its ids, a result as id=text."""
    short = []
    for message in messages:
        if "tool_calls" in message:
            short.append("+".join(each["id"] for each in message["tool_calls"]))
        elif message["role"] == "tool":
            short.append(f"{message['tool_call_id']}={message['content']}")
        else:
            short.append(message["content"])
    return short


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param([calling("1"), result("1", "r")], ["1", "1=r"], id="a pair"),
        pytest.param([calling("1"), user("x")], ["1", f"1={NO_RESULT}", "x"], id="a call without a result"),
        pytest.param([user("x"), result("1", "r")], ["x"], id="a result without a call"),
        pytest.param([result("1", "r"), calling("1")], ["1", f"1={NO_RESULT}"], id="a result before its call"),
        pytest.param([calling("1"), user("x"), result("1", "r")], ["1", "1=r", "x"], id="something between"),
        pytest.param(
            [calling("1", "2"), result("2", "b"), result("1", "a")], ["1+2", "1=a", "2=b"], id="in another order"
        ),
        pytest.param([calling("1", "2"), result("2", "b")], ["1+2", f"1={NO_RESULT}", "2=b"], id="one of two"),
        pytest.param([calling("1"), result("1", "a"), result("1", "b")], ["1", "1=a"], id="a result twice"),
        pytest.param(
            [calling("1"), calling("1"), result("1", "r")],
            ["1", f"1={NO_RESULT}", "1", "1=r"],
            id="an id used again is the newer call's",
        ),
        pytest.param(
            [calling("1", "1"), result("1", "a"), result("1", "b")], ["1+1", "1=a", "1=b"], id="an id twice in a call"
        ),
        pytest.param([answer("x", tool_calls=["what", {"name": "no id"}])], ["x"], id="what is no call"),
        pytest.param([answer(None, tool_calls=["what"])], [], id="nothing but what is no call"),
    ],
)
def test_each_call_is_followed_by_its_result(said: list[Said], shown: list[str]) -> None:
    assert shape(seen(log(*said))) == shown


def test_a_missing_result_has_the_name_of_its_tool() -> None:
    assert seen(log(calling("1")))[1] == {
        "role": "tool",
        "tool_call_id": "1",
        "tool_name": "look",
        "content": NO_RESULT,
    }


# -- who, and how --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
def test_where_several_people_speak_a_message_begins_with_its_author(shared: bool) -> None:
    events = log(user("hi", author={"id": "7", "name": "Ada [admin]"}), user("ho"))
    assert texts(events, shared=shared) == ["[Ada admin] hi", "[someone] ho" if shared else "ho"]


def test_a_message_of_parts_keeps_them_and_gets_its_author() -> None:
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    [message] = seen(log(user([picture], author={"name": "Ada"})))
    assert message["content"] == [{"type": "text", "text": "[Ada] "}, picture]


def test_an_interrupted_answer_says_so() -> None:
    events = log(
        answer("half a", interrupted=True),
        answer([{"type": "text", "text": "half"}], interrupted=True),
        answer(None, tool_calls=[call("1")], interrupted=True),
        answer("whole", interrupted=False),
    )
    half, parts, used, _, whole = texts(events)
    assert half == f"half a{INTERRUPTED}"
    assert parts[-1] == {"type": "text", "text": INTERRUPTED}
    assert used == INTERRUPTED.strip()
    assert whole == "whole"


@pytest.mark.parametrize("content", [None, "", " \n", []])
@pytest.mark.parametrize("interrupted", [True, False])
def test_an_empty_answer_is_left_out(content: Any, interrupted: bool) -> None:
    assert texts(log(user("a"), answer(content, 2, interrupted=interrupted), user("b"))) == ["a", "b"]


def test_only_what_a_model_needs_goes_out() -> None:
    events = log(
        user("a", author={"id": "7", "name": "Ada"}, platform_message_id="99", forwarded=True),
        calling("1", to=2) | {"reasoning": "hm", "finish_reason": "tool"},
        result("1", "r", 2) | {"is_error": True, "duration_ms": 40},
        answer("A", 2, reasoning="so", interrupted=True),
    )
    assert [set(message) for message in seen(events)] == [
        {"role", "content"},
        {"role", "content", "tool_calls"},
        {"role", "content", "tool_call_id", "tool_name"},
        {"role", "content"},
    ]


def test_what_no_provider_takes_is_replaced() -> None:
    events = log(user("half \ud83d"), user(["zero \0", {"type": "text", "text": "\ud83d"}]), answer("\udc00"))
    json.dumps(seen(events), ensure_ascii=False).encode()
    assert "\0" not in str(seen(events))


# -- what stands for what came before ------------------------------------------------------------------------


def test_a_summary_stands_first() -> None:
    compaction = Compaction(seq=9, summary="They spoke of soup.", kept_from=4, messages=2)
    assert seen(log(user("b"), first=4), compaction=compaction) == [
        user(f"{SUMMARY}\nThey spoke of soup."),
        user("b"),
    ]


def test_what_is_left_out_is_told() -> None:
    compaction = Compaction(seq=9, summary="Soup.", kept_from=4, messages=2)
    assert texts(log(user("b")), left_out=True) == [LEFT_OUT, "b"]
    assert texts(log(user("b")), left_out=True, compaction=compaction) == [f"{SUMMARY}\nSoup.", LEFT_OUT, "b"]
    assert "search_conversations" in LEFT_OUT


# -- from turn to turn ---------------------------------------------------------------------------------------


@dataclass
class Gateway:
    """Turns as a gateway runs them: one at a time, first come first served, with messages arriving meanwhile."""

    shared: bool
    events: list[Event] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    steering: list[int] = field(default_factory=list)
    answers: int | None = None  # of the running turn
    said: list[Said] = field(default_factory=list)  # by the running turn so far; stored when it ends
    saw: list[Said] = field(default_factory=list)  # what the model was shown and has said, as it is sent
    calls: int = 0

    def append(self, message: Said) -> int:
        self.events.append(event(len(self.events) + 2, message))
        return self.events[-1].seq

    def view(self, events: Sequence[Event], input_seq: int) -> list[Said]:
        return project(events, input_seq=input_seq, compaction=None, shared=self.shared)

    def ask(self, text: str, steers: bool) -> None:
        seq = self.append(user(text, author={"name": "Ada"} if self.shared else None))
        unseen = {each.seq for each in self.events if each.seq > (self.answers or 0)} - {seq, *self.steering}
        (self.steering if steers and self.answers is not None and not unseen else self.waiting).append(seq)

    def post(self, text: str) -> None:
        self.append(answer(text))

    def begin(self, together: int) -> None:
        if self.answers is None and self.waiting:
            taken, self.waiting = self.waiting[:together], self.waiting[together:]
            self.answers = taken[-1]
            view = self.view(self.events, self.answers)
            assert view[: len(self.saw)] == self.saw
            assert json.dumps(view).startswith(json.dumps(self.saw)[:-1])
            self.saw = view

    def say(self, text: str) -> None:
        if self.answers is not None:
            self.tell(answer(text, self.answers))

    def use(self, text: str) -> None:
        if self.answers is not None:
            self.calls += 1
            self.tell(calling(str(self.calls), to=self.answers), result(str(self.calls), text, self.answers))
            if self.steering:
                self.answers = self.steering[-1]
                self.saw += self.view([each for each in self.events if each.seq in self.steering], self.answers)
                self.steering.clear()

    def tell(self, *messages: Said) -> None:
        self.said += messages
        bare = [{key: value for key, value in message.items() if key != "answers"} for message in messages]
        self.saw += self.view(log(*bare), 99)

    def end(self) -> None:
        if self.answers is not None:
            for message in self.said:
                self.append(message)
            self.said.clear()
            self.answers = None
            self.waiting, self.steering = [*self.steering, *self.waiting], []


word = st.sampled_from(["a", "b", " ", "", "same"])
step = st.one_of(
    st.tuples(st.just("ask"), word, st.booleans()),
    st.tuples(st.sampled_from(["say", "use"]), word),
    st.tuples(st.just("post"), word),
    st.tuples(st.just("begin"), st.integers(1, 3)),
    st.tuples(st.just("end")),
)


@settings(max_examples=300)
@given(st.booleans(), st.lists(step, max_size=60))
def test_each_view_begins_with_the_one_before_and_its_answer(shared: bool, steps: list[tuple[Any, ...]]) -> None:
    gateway = Gateway(shared)
    for name, *arguments in [*steps, ("end",), ("ask", "last", False), ("begin", 99)]:
        getattr(gateway, name)(*arguments)
    assert gateway.saw[-1]["content"].endswith("last")


messages = st.one_of(
    st.builds(user, word),
    st.builds(answer, word, st.none() | st.integers(0, 30)),
    st.builds(lambda ids, to: calling(*ids, to=to), st.lists(st.sampled_from("123")), st.none() | st.integers(0, 30)),
    st.builds(result, st.sampled_from("1234"), word, st.none() | st.integers(0, 30)),
)


@given(st.lists(messages, max_size=30), st.integers(1, 35), st.booleans())
def test_any_log_is_something_a_model_takes(said: list[Said], input_seq: int, shared: bool) -> None:
    view = seen(log(*said), input_seq, shared=shared)
    open_calls: list[str] = []
    for message in view:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
        else:
            assert open_calls == []
            open_calls = [each["id"] for each in message.get("tool_calls", ())]
            assert message["content"] or open_calls or message["role"] == "user"
    assert open_calls == []


@given(st.lists(messages, max_size=30))
def test_nobody_is_left_out_and_nobody_is_doubled(said: list[Said]) -> None:
    events = [
        replace(each, message=replace(each.message, content=f"#{each.seq}"))
        for each in log(*said)
        if each.message is not None and each.message.role == "user"
    ]
    others = [each for each in log(*said) if each.message is not None and each.message.role != "user"]
    everything = sorted([*events, *others], key=lambda each: each.seq)
    asked = [text for text in texts(everything, 99) if text in {f"#{each.seq}" for each in events}]
    assert sorted(asked) == sorted(f"#{each.seq}" for each in events)
