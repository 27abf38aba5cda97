"""What the chat makes of what it hears, without a terminal."""

from __future__ import annotations

import os
import pty
import re
import sys
import termios
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import SessionSource, SessionStore, TurnUsage
from palaver.cli.chat.answer_blocks import Block, Growing, Prose, Thought, ToolUse, settled
from palaver.cli.chat.chat_session import Talk
from palaver.cli.chat.feed_listener import Ear, Gone
from palaver.cli.chat.feed_presenter import AGAIN, AnswerEnds, Hearing, Note, Said
from palaver.cli.chat.renderer import Painter, Shown, arguments, spent, status
from palaver.cli.chat.screen import keyboard
from palaver.domain.draft import Piece, PieceKind
from palaver.domain.events import Event, EventKind
from palaver.domain.feed_events import Drafted, FeedItem, Happened, Noticed, TurnChanged
from palaver.domain.ids import PersonId, SessionId, TurnId
from palaver.domain.message import Message
from palaver.domain.turn import Turn, TurnKind, TurnState

if TYPE_CHECKING:
    from support.gateway import StartGateway

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ONE, TWO = TurnId("t_1"), TurnId("t_2")
ME = PersonId("p_me")

MARKDOWN = """\
# Title

Some *words*
on two lines.

1. one

2. two

   with more
- other

```python
a = 1

b = 2
```

| a | b |
|---|---|
| 1 | 2 |

> quoted

end"""


def text(words: str) -> Piece:
    return Piece(PieceKind.TEXT, words)


def turn(state: TurnState, turn_id: TurnId = ONE, *, input_seq: int = 1) -> TurnChanged:
    return TurnChanged(
        Turn(
            id=turn_id,
            session_id=SessionId("s"),
            kind=TurnKind.ANSWER,
            state=state,
            input_seq=input_seq,
            attempt=1,
            person_id=ME,
            created_at=NOW,
        )
    )


def said(seq: int, message: dict[str, Any], **event: Any) -> Happened:
    return Happened(Event(seq=seq, kind=EventKind.MESSAGE, at=NOW, message=Message.from_dict(message), **event))


def words_of(hearing: Hearing, *items: FeedItem) -> str:
    heard = [each for item in items for each in hearing.hear(item)]
    return "".join(each.text for each in heard if isinstance(each, Piece))


# -- growing -------------------------------------------------------------------------------------------------


def blocks_of(pieces: list[Piece]) -> list[Block]:
    growing = Growing()
    return [block for piece in pieces for block in growing.add(piece)] + list(growing.end())


@given(st.lists(st.integers(1, 40), max_size=80))
def test_however_an_answer_arrives_its_blocks_hold_all_of_it_and_whole_markdown(sizes: list[int]) -> None:
    rest, pieces = MARKDOWN, []
    for size in sizes:
        pieces.append(text(rest[:size]))
        rest = rest[size:]
    blocks = blocks_of([*pieces, text(rest)])
    assert "".join(block.text for block in blocks if isinstance(block, Prose)) == MARKDOWN
    for block in blocks:
        assert isinstance(block, Prose)
        assert block.text.count("```") != 1
        assert ("1. one" in block.text) == ("with more" in block.text)
        assert ("| a |" in block.text) == ("| 1 |" in block.text)


@pytest.mark.parametrize(
    ("given_text", "sure"),
    [
        ("one line\n", ""),
        ("a paragraph\n\n", ""),
        ("a paragraph\n\nanother\n", "a paragraph\n\n"),
        ("```\ncode\n\nmore\n", ""),
        ("```\ncode\n```\nafter\n", "```\ncode\n```\n"),
        ("- a\n\n- b\n", ""),
        ("line with \u2028 in it\n\nnext\n", "line with \u2028 in it\n\n"),
    ],
)
def test_only_what_cannot_change_any_more_is_settled(given_text: str, sure: str) -> None:
    assert given_text[: settled(given_text)] == sure


def test_the_tail_is_what_still_changes() -> None:
    growing = Growing()
    assert growing.add(text("first\n\nsec")) == []
    assert growing.add(text("ond\n")) == [Prose("first\n\n")]
    assert growing.tail == [Prose("second\n")]


def test_a_tool_waits_in_the_tail_until_it_has_answered() -> None:
    growing = Growing()
    assert growing.add(Piece(PieceKind.REASONING, "hm")) == []
    assert growing.add(Piece(PieceKind.CALL, call_id="c", name="find", arguments="{}")) == [Thought("hm")]
    assert growing.tail == [ToolUse("find", "{}")]
    result = Piece(PieceKind.RESULT, "found", call_id="c", name="find", failed=True, duration_ms=40)
    assert growing.add(result) == [ToolUse("find", "{}", "found", failed=True, duration_ms=40)]
    assert growing.tail == []


# -- hearing -------------------------------------------------------------------------------------------------


def test_an_answer_that_grew_is_not_told_again_when_it_is_in_the_log() -> None:
    hearing = Hearing(ME)
    items: list[FeedItem] = [turn(TurnState.RUNNING), Drafted(ONE, [text("Hel")]), Drafted(ONE, [text("lo.")])]
    assert words_of(hearing, *items) == "Hello."
    assert hearing.running
    assert hearing.hear(said(2, {"role": "assistant", "content": "Hello.", "answers": 1})) == []
    assert hearing.hear(turn(TurnState.DONE)) == [AnswerEnds()]
    assert not hearing.running


def test_what_had_not_grown_before_our_eyes_is_told_from_the_log() -> None:
    hearing = Hearing(ME)
    words_of(hearing, turn(TurnState.RUNNING), Drafted(ONE, [text("Hel")]))
    assert words_of(hearing, said(2, {"role": "assistant", "content": "Hello.", "answers": 1})) == "lo."
    hearing.hear(turn(TurnState.DONE))
    assert words_of(hearing, said(4, {"role": "assistant", "content": "Whole.", "answers": 3})) == "Whole."


def test_tools_are_told_once() -> None:
    call = Piece(PieceKind.CALL, call_id="c", name="find", arguments='{"a": 1}')
    result = Piece(PieceKind.RESULT, "found", call_id="c", name="find", duration_ms=40)
    calls = [{"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}]
    found = {"role": "tool", "content": "found", "answers": 1}
    log = [
        said(2, {"role": "assistant", "content": None, "tool_calls": calls, "answers": 1}),
        said(3, found | {"tool_call_id": "c", "tool_name": "find", "duration_ms": 40}),
    ]
    hearing = Hearing(ME)
    assert hearing.hear(Drafted(ONE, [call])) == [call]
    assert [heard for item in log for heard in hearing.hear(item)] == [result]
    assert [heard for item in log for heard in Hearing(ME).hear(item)] == [call, result]


def test_an_answer_that_begins_again_says_so() -> None:
    hearing = Hearing(ME)
    words_of(hearing, turn(TurnState.RUNNING), Drafted(ONE, [text("Hel")]))
    assert hearing.hear(Drafted(ONE, [text("He")], afresh=True)) == [AnswerEnds(), Note(AGAIN), text("He")]
    assert words_of(hearing, said(2, {"role": "assistant", "content": "Hello", "answers": 1})) == "llo"


def test_what_is_said_elsewhere_is_told_with_who_said_it() -> None:
    hearing = Hearing(ME, is_own=lambda event: event.seq == 1)
    assert hearing.hear(said(1, {"role": "user", "content": "mine"})) == []
    assert hearing.hear(said(2, {"role": "user", "content": "hi"}, person_id=ME)) == [Said("you, elsewhere", "hi")]
    bob = {"role": "user", "content": "ho", "author": {"name": "Bob"}}
    assert hearing.hear(said(3, bob, person_id=PersonId("p_bob"))) == [Said("Bob", "ho")]
    assert hearing.hear(said(4, {"role": "user", "content": "gone"}, hidden=True)) == []


@pytest.mark.parametrize(
    ("kind", "reason", "note"),
    [
        (EventKind.FAILED, "the key is wrong", Note("no answer: the key is wrong", trouble=True)),
        (EventKind.INTERRUPTED, "stopped", Note("stopped")),
        (EventKind.INTERRUPTED, "it took too long", Note("interrupted: it took too long")),
    ],
)
def test_an_answer_without_its_end_is_explained(kind: EventKind, reason: str, note: Note) -> None:
    event = Event(seq=3, kind=kind, at=NOW, facts={"turn": "t_1", "reason": reason})
    assert Hearing(ME).hear(Happened(event)) == [AnswerEnds(), note]


def test_who_waits_for_one_answer_hears_no_other() -> None:
    hearing = Hearing(None, turn_id=TWO)
    before: list[FeedItem] = [
        turn(TurnState.RUNNING, ONE),
        turn(TurnState.QUEUED, TWO, input_seq=2),
        Drafted(ONE, [text("not mine")]),
        Noticed(ONE, "nor this"),
        said(2, {"role": "user", "content": "a question"}),
        said(3, {"role": "assistant", "content": "not mine", "answers": 1}),
        turn(TurnState.DONE, ONE),
    ]
    assert [heard for item in before for heard in hearing.hear(item)] == []
    mine = said(4, {"role": "assistant", "content": "mine", "answers": 2})
    assert words_of(hearing, turn(TurnState.RUNNING, TWO, input_seq=2), Drafted(TWO, [text("mi")]), mine) == "mine"


def test_waiting_messages_are_counted_and_a_dropped_one_does_not_end_the_answer() -> None:
    hearing = Hearing(ME)
    for item in (turn(TurnState.RUNNING, ONE), Drafted(ONE, [text("a")]), turn(TurnState.QUEUED, TWO, input_seq=2)):
        hearing.hear(item)
    assert (hearing.running, hearing.waiting) == (True, 1)
    assert hearing.hear(turn(TurnState.INTERRUPTED, TWO, input_seq=2)) == []
    assert (hearing.running, hearing.waiting) == (True, 0)


# -- painting ------------------------------------------------------------------------------------------------


def test_nothing_that_was_said_steers_the_terminal() -> None:
    evil = "a\x1b]0;title\x07b\x1b[2Jc\x9b1md\u202e"
    blocks: list[Shown] = [Prose(evil), Thought(evil), ToolUse(evil, evil, evil), Said(evil, evil), Note(evil)]
    painted = Painter({"TERM": "xterm-256color"}).paint(blocks, 60)
    assert "\x1b" not in re.sub(r"\x1b\[[0-9;]*m", "", painted)
    assert not {"\x07", "\x9b", "\u202e"} & set(painted)


def test_without_colour_nothing_is_coloured() -> None:
    painted = Painter({"TERM": "xterm-256color", "NO_COLOR": "1"}).paint(
        [Note("oh", trouble=True), Said("Bob", "hi")], 60
    )
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", painted)


def test_a_long_result_is_cut_and_says_so() -> None:
    painted = Painter({}).paint([ToolUse("find", "{}", "\n".join(f"line {n}" for n in range(20)))], 60)
    assert "line 3" in painted
    assert "line 4" not in painted
    assert "16 more lines" in painted


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ('{"query": "cat", "limit": 3}', "query: cat, limit: 3"),
        ('{"text": "two\\nlines"}', "text: two lines"),
        ("{}", ""),
        ("[1, 2]", "[1, 2]"),
        ('{"cut": "of', '{"cut": "of'),
    ],
)
def test_arguments_stand_on_one_line(given_text: str, shown: str) -> None:
    assert arguments(given_text) == shown


def test_the_status_fits_the_terminal() -> None:
    assert status(None, "a-model", running=False, waiting=0, width=80) == " a-model · new conversation · idle"
    assert status(None, "a-model", running=True, waiting=2, width=80).endswith("answering, Ctrl-C stops, 2 waiting")
    assert status(None, "a-model", running=False, waiting=0, width=28) == " a-model · new conve… · idle"
    assert len(status(None, "a-model" * 20, running=False, waiting=0, width=40)) == 40


def test_a_cost_that_nobody_knows_is_said_to_be_unknown(sqlite_store: SessionStore) -> None:
    session_id = sqlite_store.record_user_message(SessionSource.local_cli(), "hi").session_id
    assert spent(sqlite_store.get_session(session_id)) == ["0 tokens"]
    sqlite_store.update_session(session_id, TurnUsage(turn_id="1", input_tokens=1200, output_tokens=34))
    assert spent(sqlite_store.get_session(session_id)) == ["1,234 tokens", "cost unknown"]
    sqlite_store.update_session(session_id, TurnUsage(turn_id="2", input_tokens=1, cost="0.5"))
    assert spent(sqlite_store.get_session(session_id)) == ["1,235 tokens", "$0.5000 + 1 turn unpriced"]


# -- which conversation it is ----------------------------------------------------------------------------------


async def test_news_that_a_conversation_was_deleted_do_not_end_the_one_begun_meanwhile(
    start_gateway: StartGateway,
) -> None:
    gateway = await start_gateway()
    talk = Talk(gateway, await gateway.store.aio.owner())
    ear = Ear(talk)
    deleted = (await talk.say("hello")).session_id
    assert deleted is not None
    ear.turn()
    begun = (await talk.say("/new")).session_id
    assert begun is not None
    await gateway.store.aio.delete_session(deleted)
    while not isinstance(heard := await ear.next(), Gone):
        pass
    assert not await talk.leave(heard.session_id)
    assert talk.session_id == begun != deleted
    assert await talk.leave(begun)
    assert await talk.session() is None
    ear.close()


# -- keys ------------------------------------------------------------------------------------------------------


def test_keys_that_are_struck_while_something_is_written_above_are_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal in its usual mode would show them, and make the Enter that sends the one that begins a line."""
    master, slave = pty.openpty()
    with os.fdopen(master, "rb"), os.fdopen(slave, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        keys = keyboard()
        with keys.raw_mode():
            raw = termios.tcgetattr(slave)
            with keys.cooked_mode():  # as it is when something is written
                assert termios.tcgetattr(slave) == raw
        assert termios.tcgetattr(slave) != raw
