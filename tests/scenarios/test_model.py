"""The session store against a model of it that is simple enough to be believed.

The model keeps each conversation as a Python list, and a lane as a pointer to one of them. Hypothesis invents
long series of operations and compares what the store says after each.
"""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from palaver import GatewayConfig, SessionSource, SessionStore, TurnUsage
from palaver.domain.errors import (
    InvalidInput,
    NoSuchSession,
    NothingToRedo,
    NothingToRestore,
    NothingToUndo,
    TitleTaken,
)
from palaver.storage.engines.base import Write
from palaver.testing import FakeClock

sys.path.insert(0, str(Path(__file__).parent))

from harness import disorder

if TYPE_CHECKING:
    from palaver.storage.engines.base import Transaction

pytestmark = pytest.mark.slow

Said = dict[str, Any]

# -- the model -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Entry:
    """One line of a log."""

    kind: str
    message: Said | None = None
    hidden: bool = False


@dataclass(eq=False)
class Talk:
    """One conversation."""

    id: str
    audience: str
    shared: bool
    parent: Talk | None = None
    log: list[Entry] = field(default_factory=lambda: [Entry("started")])
    undone: list[list[Entry]] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)
    title: str | None = None
    pinned: bool = False
    archived: bool = False
    ended: bool = False
    moved: int | None = None  # when it last rose to the top of the list

    @property
    def shown(self) -> list[tuple[int, Said]]:
        """The visible messages and their numbers."""
        return [
            (seq, entry.message)
            for seq, entry in enumerate(self.log, 1)
            if entry.message is not None and not entry.hidden
        ]

    @property
    def transcript(self) -> list[Said]:
        return [message for _, message in self.shown]

    def add(self, messages: list[Said], now: int) -> int:
        self.log += [Entry("message", message) for message in messages]
        self.undone.clear()
        self.moved = now
        return len(self.log)

    def hide(self, first: int, kind: str) -> list[Entry]:
        """Hide everything visible from a number on, and note why."""
        hidden = [entry for entry in self.log[first - 1 :] if entry.message is not None and not entry.hidden]
        for entry in hidden:
            entry.hidden = True
        self.log.append(Entry(kind))
        return hidden


@dataclass(eq=False)
class Lane:
    """A place, the conversation it is on, and how it came there."""

    name: str
    speakers: tuple[str, ...]
    on: Talk | None = None
    moves: list[tuple[Talk, Talk]] = field(default_factory=list)

    @property
    def shared(self) -> bool:
        return len(self.speakers) > 1

    def source(self, who: str) -> SessionSource:
        name = who.title()
        if self.shared:
            return SessionSource("telegram", "club", chat_type="group", thread_id="1", user_id=who, user_name=name)
        return SessionSource("telegram", who, user_id=who, user_name=name, thread_id=self.name)


WORDS = ("zebrafish", "quokka", "axolotl", "straße", "мир", "你好")
TITLES = ("Plans", "plans", "Plans #2", "PLANS #1", "Other", None)


def slot(title: str) -> tuple[str, int]:
    numbered = re.fullmatch(r"(.+) #(\d+)", title)
    return (numbered[1].casefold(), int(numbered[2])) if numbered else (title.casefold(), 1)


def words_of(message: Said) -> str:
    content = message["content"]
    if isinstance(content, list):
        content = " ".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content or ""


def preview_of(transcript: list[Said]) -> str:
    """The last thing that a person or the agent has said in words."""
    for message in reversed(transcript):
        words = words_of(message).replace("\0", " ").encode("utf-8", "replace").decode()
        if message["role"] in {"user", "assistant"} and words.split():
            return " ".join(words.split())[:120]
    return ""


# -- what can be said ------------------------------------------------------------------------------------------

junk = st.text(st.characters(exclude_categories=()), max_size=6) | st.sampled_from(["\0", "\ud83d", "e\u0301", ""])
texts = st.builds("{} {} {}".format, junk, st.sampled_from(WORDS), junk) | st.sampled_from(["again", "", " \n"])
messages = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, texts),
    st.builds(lambda text: {"role": "assistant", "content": text}, texts),
    st.builds(
        lambda text: {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "url": "x"}]},
        texts,
    ),
    st.just({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}]}),
    st.builds(lambda text: {"role": "tool", "content": text, "tool_call_id": "c", "tool_name": "f"}, texts),
    st.builds(lambda text: {"role": "assistant", "content": text, "reasoning": "\0 because", "mood": [1, None]}, texts),
)
several = st.lists(messages, min_size=1, max_size=4)
turn_ids = st.sampled_from(["t1", "t2", "t3"])
pick = st.integers(0, 1_000_000)  # of whatever there is


class Conversations(RuleBasedStateMachine):
    """Does the same to the store and to the model."""

    store: SessionStore  # these two are set by the test
    clock: FakeClock
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.lanes = [
            Lane("one", ("ada",)),
            Lane("two", ("ada",)),
            Lane("three", ("bob",)),
            Lane("club", ("ada", "bob")),
        ]
        self.talks: list[Talk] = []
        self.members: dict[str, set[str]] = {"ada": {"ada"}, "bob": {"bob"}, "club": set()}
        self.now = 0
        self.awaits = False

    @initialize(awaits=st.booleans())
    def begin(self, awaits: bool) -> None:
        """Through the blocking form or through its awaitable twin."""
        self.awaits = awaits
        empty(self.store)
        self.everything = self.store.seen_by(self.store.owner().principal, everything=True)

    def do(self, operation: str, *args: Any, **options: Any) -> Any:
        self.now += 1
        self.clock.advance(seconds=10)
        return self.ask(operation, *args, **options)

    def ask(self, operation: str, *args: Any, **options: Any) -> Any:
        if self.awaits:
            return self.loop.run_until_complete(getattr(self.store.aio, operation)(*args, **options))
        return getattr(self.store, operation)(*args, **options)

    def talk(self, number: int) -> Talk:
        return self.talks[number % len(self.talks)]

    def lane(self, number: int) -> tuple[Lane, str]:
        lane = self.lanes[number % len(self.lanes)]
        return lane, lane.speakers[number // len(self.lanes) % len(lane.speakers)]

    def key(self, lane: Lane) -> str:
        return GatewayConfig().session_key(lane.source(lane.speakers[0]))

    # -- lanes -----------------------------------------------------------------------------------------------

    def new_talk(self, session_id: str, lane: Lane) -> Talk:
        assert session_id not in {talk.id for talk in self.talks}
        talk = Talk(session_id, "club" if lane.shared else lane.speakers[0], lane.shared)
        self.talks.append(talk)
        return talk

    def enter(self, lane: Lane, who: str, session_id: str) -> Talk:
        """The lane's conversation; a new one when there is none."""
        if lane.on is None:
            lane.on = self.new_talk(session_id, lane)
            self.members[lane.on.audience].add(who)
        assert lane.on.id == session_id
        return lane.on

    def leave(self, lane: Lane, to: Talk) -> None:
        """Move a lane; what nobody is on any more ends, what somebody is on again goes on."""
        was, lane.on = lane.on, to
        if was is not None and was is not to and not was.ended and all(each.on is not was for each in self.lanes):
            was.ended = True
            was.log.append(Entry("ended"))
        if to.ended:
            to.ended = False
            to.log.append(Entry("reopened"))

    @rule(number=pick)
    def get_or_create(self, number: int) -> None:
        lane, who = self.lane(number)
        entry = self.do("get_or_create_session", lane.source(who))
        assert entry.is_new == (lane.on is None)
        self.enter(lane, who, entry.session_id)

    @rule(number=pick, text=texts)
    def record(self, number: int, text: str) -> None:
        lane, who = self.lane(number)
        said = self.do("record_user_message", lane.source(who), text)
        assert (said.began is not None) == (lane.on is None)
        talk = self.enter(lane, who, said.session_id)
        message: Said = {"role": "user", "content": text}
        if talk.shared or lane.shared:
            message["author"] = {"id": who, "name": who.title()}
        if talk.shared:
            self.members[talk.audience].add(who)
        assert said.seq == talk.add([message], self.now)

    @rule(number=pick)
    def reset(self, number: int) -> None:
        lane, _ = self.lane(number)
        if lane.on is None:
            with pytest.raises(NoSuchSession):
                self.do("reset_session", self.key(lane))
            return
        entry = self.do("reset_session", self.key(lane))
        assert entry.is_new
        assert entry.reset_had_activity == bool(lane.on.transcript)
        new = self.new_talk(entry.session_id, lane)
        lane.moves.append((lane.on, new))
        self.leave(lane, new)

    @precondition(lambda self: self.talks)
    @rule(number=pick, to=pick)
    def switch(self, number: int, to: int) -> None:
        (lane, _), target = self.lane(number), self.talk(to)
        if lane.on is None:
            with pytest.raises(NoSuchSession):
                self.do("switch_session", self.key(lane), target.id)
            return
        assert self.do("switch_session", self.key(lane), target.id).session_id == target.id
        if lane.on is not target:
            lane.moves.append((lane.on, target))
        self.leave(lane, target)

    @rule(number=pick)
    def restore(self, number: int) -> None:
        lane, _ = self.lane(number)
        while lane.moves and lane.moves[-1][0] is lane.on:  # what lay between was deleted
            lane.moves.pop()
        if lane.on is None or not lane.moves:
            with pytest.raises(NothingToRestore):
                self.do("restore", self.key(lane))
            return
        back, _ = lane.moves.pop()
        assert self.do("restore", self.key(lane)).session_id == back.id
        self.leave(lane, back)

    # -- one conversation ------------------------------------------------------------------------------------

    @precondition(lambda self: self.talks)
    @rule(number=pick, said=several, turn=st.none() | turn_ids)
    def append(self, number: int, said: list[Said], turn: str | None) -> None:
        talk = self.talk(number)
        used = None if turn is None else TurnUsage(turn_id=turn, input_tokens=len(talk.log))
        if turn is not None:
            talk.turns.setdefault(turn, len(talk.log))
        seq = self.do("append_to_transcript", talk.id, said if len(said) > 1 else said[0], usage=used)
        assert seq == talk.add(said, self.now)

    @precondition(lambda self: self.talks)
    @rule(number=pick, turns=st.integers(1, 12), length=st.integers(0, 4))
    def chat(self, number: int, turns: int, length: int) -> None:
        """Whole turns at once, so that what is hidden together and what is copied together becomes long."""
        talk = self.talk(number)
        turn = [{"role": "user", "content": "why?"}, *[{"role": "assistant", "content": "so."}] * length]
        assert self.do("append_to_transcript", talk.id, turn * turns) == talk.add(turn * turns, self.now)

    @precondition(lambda self: self.talks)
    @rule(number=pick, keep=st.integers(0, 40), said=st.lists(messages, max_size=3))
    def rewrite(self, number: int, keep: int, said: list[Said]) -> None:
        talk = self.talk(number)
        wanted = [*talk.transcript[:keep], *said]
        self.do("rewrite_transcript", talk.id, wanted)
        same = 0
        while same < min(len(talk.transcript), len(wanted)) and talk.transcript[same] == wanted[same]:
            same += 1
        if same == len(talk.transcript) == len(wanted):
            return
        before = talk.moved
        talk.hide(talk.shown[same][0] if same < len(talk.shown) else len(talk.log) + 1, "rewritten")
        talk.add(wanted[same:], self.now)
        talk.moved = before or self.now

    @precondition(lambda self: self.talks)
    @rule(number=pick, turns=st.integers(1, 3) | st.integers(1, 30))
    def undo(self, number: int, turns: int) -> None:
        talk = self.talk(number)
        starts = [seq for seq, message in talk.shown if message["role"] == "user"][-turns:]
        if not starts:
            with pytest.raises(NothingToUndo):
                self.do("undo", talk.id, turns)
            return
        done = self.do("undo", talk.id, turns)
        hidden = talk.hide(starts[0], "undone")
        talk.undone.append(hidden)
        assert (done.turns, done.messages) == (len(starts), len(hidden))

    @precondition(lambda self: self.talks)
    @rule(number=pick)
    def redo(self, number: int) -> None:
        talk = self.talk(number)
        if not talk.undone:
            with pytest.raises(NothingToRedo):
                self.do("redo", talk.id)
            return
        shown = talk.undone.pop()
        assert self.do("redo", talk.id).messages == len(shown)
        for entry in shown:
            entry.hidden = False
        talk.log.append(Entry("redone"))

    @precondition(lambda self: self.talks)
    @rule(number=pick, at=st.none() | pick)
    def fork(self, number: int, at: int | None) -> None:
        talk = self.talk(number)
        seq = None if at is None else at % (len(talk.log) + 1) + 1
        copied = talk.transcript
        if seq is not None:
            numbers = [each for each, _ in talk.shown]
            if seq not in numbers:
                with pytest.raises(InvalidInput):
                    self.do("fork", talk.id, seq)
                return
            after = [each for each, message in talk.shown if each > seq and message["role"] == "user"]
            copied = [message for each, message in talk.shown if not after or each < after[0]]
        new = self.do("fork", talk.id, seq)
        copy = Talk(new.id, talk.audience, talk.shared, talk)
        copy.log += [Entry("message", message) for message in copied]
        copy.moved = self.now if copied else None
        self.talks.append(copy)
        talk.log.append(Entry("forked"))

    @precondition(lambda self: self.talks)
    @rule(number=pick, title=st.sampled_from(TITLES))
    def rename(self, number: int, title: str | None) -> None:
        talk = self.talk(number)
        if title is not None and title != talk.title:
            among = {talk.audience}
            if not talk.shared:
                among |= {audience for audience, members in self.members.items() if talk.audience in members}
            taken = {slot(each.title) for each in self.talks if each.title and each.audience in among and each != talk}
            if slot(title) in taken:
                with pytest.raises(TitleTaken):
                    self.do("rename_session", talk.id, title)
                return
        self.do("rename_session", talk.id, title)
        if title != talk.title:
            talk.title = title
            talk.log.append(Entry("renamed"))

    @precondition(lambda self: self.talks)
    @rule(number=pick, pinned=st.booleans())
    def pin(self, number: int, pinned: bool) -> None:
        talk = self.talk(number)
        self.do("pin", talk.id, pinned)
        if talk.pinned != pinned:
            talk.pinned = pinned
            talk.log.append(Entry("pinned" if pinned else "unpinned"))

    @precondition(lambda self: self.talks)
    @rule(number=pick, archived=st.booleans())
    def archive(self, number: int, archived: bool) -> None:
        talk = self.talk(number)
        self.do("archive", talk.id, archived)
        if talk.archived != archived:
            talk.archived = archived
            talk.log.append(Entry("archived" if archived else "unarchived"))

    @precondition(lambda self: self.talks)
    @rule(number=pick, turn=turn_ids, tokens=st.integers(1, 10**12))
    def update(self, number: int, turn: str, tokens: int) -> None:
        talk = self.talk(number)
        self.do("update_session", talk.id, turn_id=turn, input_tokens=tokens)
        talk.turns.setdefault(turn, tokens)

    @precondition(lambda self: self.talks)
    @rule(number=pick)
    def delete(self, number: int) -> None:
        talk = self.talk(number)
        self.do("delete_session", talk.id)
        self.talks.remove(talk)
        for lane in self.lanes:
            lane.on = None if lane.on is talk else lane.on
            lane.moves = [move for move in lane.moves if talk not in move]
        for each in self.talks:
            each.parent = None if each.parent is talk else each.parent
        for operation in ("load_transcript", "get_session", "undo", "redo", "fork", "delete_session"):
            with pytest.raises(NoSuchSession):
                self.ask(operation, talk.id)
        with pytest.raises(NoSuchSession):
            self.ask("append_to_transcript", talk.id, "too late")

    # -- looking ---------------------------------------------------------------------------------------------

    @rule(word=st.sampled_from(WORDS))
    def search(self, word: str) -> None:
        found = self.ask("search", word, limit=200)
        expected = {
            (talk.id, seq) for talk in self.talks for seq, message in talk.shown if word in words_of(message).split()
        }
        assert len(found) == len({(hit.session_id, hit.seq) for hit in found})
        assert {(hit.session_id, hit.seq) for hit in found} == expected
        positions = [hit.position for hit in found]
        assert positions == sorted(positions, reverse=True)

    @rule(limit=st.integers(1, 4), shelf=st.sampled_from(["current", "archived", "pinned"]))
    def page(self, limit: int, shelf: str) -> None:
        listed: list[str] = []
        cursor = None
        while True:
            page = self.ask("list_sessions", limit=limit, cursor=cursor, shelf=shelf)
            listed += [session.id for session in page]
            cursor = page.cursor
            if cursor is None:
                break
        shelves = {
            "current": [talk for talk in self.talks if not talk.archived],
            "archived": [talk for talk in self.talks if talk.archived],
            "pinned": [talk for talk in self.talks if talk.pinned],
        }
        wanted = [talk for talk in shelves[shelf] if talk.moved is not None]
        assert listed == [talk.id for talk in sorted(wanted, key=lambda talk: -(talk.moved or 0))]

    @precondition(lambda self: self.talks)
    @rule(number=pick, limit=st.integers(1, 60), before=st.none() | pick)
    def tail(self, number: int, limit: int, before: int | None) -> None:
        talk = self.talk(number)
        assert self.ask("load_transcript", talk.id, limit) == talk.transcript[-limit:]
        end = None if before is None else before % (len(talk.log) + 2)
        loaded = self.everything.load(talk.id, before=end, limit=limit)
        expected = [seq for seq, _ in talk.shown if end is None or seq < end]
        assert [event.seq for event in loaded] == expected[-limit:]

    @invariant()
    def every_conversation_is_as_the_model_says(self) -> None:
        for talk in self.talks[-3:]:
            self.compare(talk)
        for lane in self.lanes:
            entry = self.store.get_entry(self.key(lane))
            assert (entry and entry.session_id) == (lane.on and lane.on.id)

    def compare(self, talk: Talk) -> None:
        assert self.store.load_transcript(talk.id) == talk.transcript
        log = self.store.events(talk.id, limit=10_000)
        assert [(event.kind, event.hidden) for event in log] == [(entry.kind, entry.hidden) for entry in talk.log]
        session = self.store.get_session(talk.id)
        assert session.message_count == len(talk.transcript)
        assert session.preview == preview_of(talk.transcript)
        assert session.usage.input_tokens == sum(talk.turns.values())
        assert (session.title, session.pinned, session.archived) == (talk.title, talk.pinned, talk.archived)
        assert (session.ended_at is not None) == talk.ended
        assert session.shared == talk.shared
        assert session.parent_id == (talk.parent.id if talk.parent else None)

    def teardown(self) -> None:
        for talk in self.talks:
            self.compare(talk)
        assert self.store.has_any_sessions() == any(talk.moved is not None for talk in self.talks)


TABLES = (
    *("search", "delivery", "turn", "route_change", "route", "event", "session", "usage"),
    *("project", "identity", "audience_member", "person", "audience"),
)


def empty(store: SessionStore) -> None:
    """Begin again with nothing stored."""

    def run(tx: Transaction) -> None:
        for table in TABLES:
            tx.run(f"DELETE FROM {table}")

    store._engine.run(Write(run))


def test_the_store_does_what_a_simple_model_does(store_url: str) -> None:
    examples = 80 if store_url.startswith("sqlite:") else 20
    loop = asyncio.new_event_loop()
    clock = FakeClock()
    try:
        with SessionStore.open(store_url, clock=clock) as store:
            machine: Any = type("Machine", (Conversations,), {"store": store, "clock": clock, "loop": loop})
            effort = settings(max_examples=examples, stateful_step_count=40, deadline=None, print_blob=True)
            run_state_machine_as_test(machine, settings=effort)
            assert disorder(store_url) == []
    finally:
        loop.close()
