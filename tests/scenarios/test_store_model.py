"""The session store compared with a simple model.

The model holds each conversation as a Python list, and a lane as a pointer to one of them. Hypothesis generates long
series of operations; after each of them, store and model must agree.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from palaver import GatewayConfig, SessionSource, SessionStore, TurnUsage
from palaver.core.engines.base import Write
from palaver.core.errors import (
    InvalidInput,
    NothingToRedo,
    NothingToRestore,
    NothingToUndo,
    SessionNotFound,
    TitleTaken,
)
from palaver.core.text import make_storable
from palaver.sessions.message import make_preview
from palaver.testing import FakeClock
from scenarios.store_harness import find_inconsistencies

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]

MessageFields = dict[str, Any]

# -- the model ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class ModelEvent:
    kind: str
    message: MessageFields | None = None
    hidden: bool = False


@dataclass(eq=False)
class ModelSession:
    id: str
    audience: str
    shared: bool
    parent: ModelSession | None = None
    log: list[ModelEvent] = field(default_factory=lambda: [ModelEvent("started")])
    undone: list[list[ModelEvent]] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)
    title: str | None = None
    pinned: bool = False
    archived: bool = False
    ended: bool = False
    active_at: int | None = None  # when it last rose to the top of the list

    @property
    def visible(self) -> list[tuple[int, MessageFields]]:
        """The visible messages with their numbers."""
        return [
            (seq, event.message)
            for seq, event in enumerate(self.log, 1)
            if event.message is not None and not event.hidden
        ]

    @property
    def transcript(self) -> list[MessageFields]:
        return [message for _, message in self.visible]

    def add(self, messages: list[MessageFields], now: int) -> int:
        self.log += [ModelEvent("message", message) for message in messages]
        self.undone.clear()
        self.active_at = now
        return len(self.log)

    def hide(self, first: int, kind: str) -> list[ModelEvent]:
        """Hide everything visible from a number on, and log the reason."""
        hidden = [event for event in self.log[first - 1 :] if event.message is not None and not event.hidden]
        for event in hidden:
            event.hidden = True
        self.log.append(ModelEvent(kind))
        return hidden


@dataclass(eq=False)
class ModelLane:
    """A lane, its current session, and its moves from one session to another."""

    name: str
    speakers: tuple[str, ...]
    current: ModelSession | None = None
    moves: list[tuple[ModelSession, ModelSession]] = field(default_factory=list)

    @property
    def shared(self) -> bool:
        return len(self.speakers) > 1

    def build_source(self, user: str) -> SessionSource:
        name = user.title()
        if self.shared:
            return SessionSource("telegram", "club", chat_type="group", thread_id="1", user_id=user, user_name=name)
        return SessionSource("telegram", user, user_id=user, user_name=name, thread_id=self.name)


WORDS = ("zebrafish", "quokka", "axolotl", "straße", "мир", "你好")
TITLES = ("Plans", "plans", "Plans #2", "PLANS #1", "Other", None)


def split_title(title: str) -> tuple[str, int]:
    """Split a title into its case-folded base and its number."""
    numbered = re.fullmatch(r"(.+) #(\d+)", title)
    return (numbered[1].casefold(), int(numbered[2])) if numbered else (title.casefold(), 1)


def get_text(message: MessageFields) -> str:
    content = message["content"]
    if isinstance(content, list):
        content = " ".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content or ""


def build_preview(transcript: list[MessageFields]) -> str:
    """Build the preview: the last text of a person or of the agent."""
    for message in reversed(transcript):
        words = get_text(message)
        if message["role"] in {"user", "assistant"} and words.split():
            return make_preview(words)
    return ""


# -- generated messages ---------------------------------------------------------------------------------------

junk = st.text(st.characters(exclude_categories=()), max_size=6) | st.sampled_from(["\0", "\ud83d", "e\u0301", ""])
difficult_texts = st.builds("{} {} {}".format, junk, st.sampled_from(WORDS), junk).map(make_storable)
texts = difficult_texts | st.sampled_from(["again", "", " \n"])
messages = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, texts),
    st.builds(lambda text: {"role": "assistant", "content": text}, texts),
    st.builds(
        lambda text: {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "url": "x"}]},
        texts,
    ),
    st.just({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}]}),
    st.builds(lambda text: {"role": "tool", "content": text, "tool_call_id": "c", "tool_name": "f"}, texts),
    st.builds(lambda text: {"role": "assistant", "content": text, "reasoning": "\1 because", "mood": [1, None]}, texts),
)
several = st.lists(messages, min_size=1, max_size=4)
turn_ids = st.sampled_from(["t1", "t2", "t3"])
pick = st.integers(0, 1_000_000)  # chooses one of the sessions or lanes there are


class StoreMachine(RuleBasedStateMachine):
    """Applies every operation to the store and to the model."""

    store: SessionStore  # these three are set by the test
    clock: FakeClock
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.lanes = [
            ModelLane("one", ("ada",)),
            ModelLane("two", ("ada",)),
            ModelLane("three", ("bob",)),
            ModelLane("club", ("ada", "bob")),
        ]
        self.sessions: list[ModelSession] = []
        self.has_forked = False
        self.members: dict[str, set[str]] = {"ada": {"ada"}, "bob": {"bob"}, "club": set()}
        self.now = 0
        self.is_async = False

    @initialize(is_async=st.booleans())
    def start(self, is_async: bool) -> None:
        """Use the blocking or the awaitable form of all operations."""
        self.is_async = is_async
        clear_store(self.store)
        self.full_view = self.store.seen_by(self.store.get_owner().principal, everything=True)

    def change(self, operation: str, *args: Any, **options: Any) -> Any:
        self.now += 1
        self.clock.advance(seconds=10)
        return self.call(operation, *args, **options)

    def call(self, operation: str, *args: Any, **options: Any) -> Any:
        if self.is_async:
            return self.loop.run_until_complete(getattr(self.store.aio, operation)(*args, **options))
        return getattr(self.store, operation)(*args, **options)

    def get_session(self, number: int) -> ModelSession:
        return self.sessions[number % len(self.sessions)]

    def get_lane(self, number: int) -> tuple[ModelLane, str]:
        lane = self.lanes[number % len(self.lanes)]
        return lane, lane.speakers[number // len(self.lanes) % len(lane.speakers)]

    def build_key(self, lane: ModelLane) -> str:
        return GatewayConfig().build_session_key(lane.build_source(lane.speakers[0]))

    # -- lanes ------------------------------------------------------------------------------------------------

    def add_session(self, session_id: str, lane: ModelLane) -> ModelSession:
        assert session_id not in {session.id for session in self.sessions}
        session = ModelSession(session_id, "club" if lane.shared else lane.speakers[0], lane.shared)
        self.sessions.append(session)
        return session

    def get_or_add_session(self, lane: ModelLane, user: str, session_id: str) -> ModelSession:
        """Get the current session of a lane; a new one if it has none."""
        if lane.current is None:
            lane.current = self.add_session(session_id, lane)
            self.members[lane.current.audience].add(user)
        assert lane.current.id == session_id
        return lane.current

    def move_lane(self, lane: ModelLane, to: ModelSession) -> None:
        """Move a lane. A session that is no longer current anywhere ends; an ended session is reopened."""
        old, lane.current = lane.current, to
        if old is not None and old is not to and not old.ended and all(each.current is not old for each in self.lanes):
            old.ended = True
            old.log.append(ModelEvent("ended"))
        if to.ended:
            to.ended = False
            to.log.append(ModelEvent("reopened"))

    @rule(number=pick)
    def get_or_create(self, number: int) -> None:
        lane, user = self.get_lane(number)
        entry = self.change("get_or_create_session", lane.build_source(user))
        assert entry.is_new == (lane.current is None)
        self.get_or_add_session(lane, user, entry.session_id)

    @rule(number=pick, text=texts)
    def record(self, number: int, text: str) -> None:
        lane, user = self.get_lane(number)
        recorded = self.change("record_user_message", lane.build_source(user), text)
        assert (recorded.start_reason is not None) == (lane.current is None)
        session = self.get_or_add_session(lane, user, recorded.session_id)
        message: MessageFields = {"role": "user", "content": text}
        if session.shared or lane.shared:
            message["author"] = {"id": user, "name": user.title()}
        if session.shared:
            self.members[session.audience].add(user)
        assert recorded.seq == session.add([message], self.now)

    @rule(number=pick)
    def reset(self, number: int) -> None:
        lane, _ = self.get_lane(number)
        if lane.current is None:
            with pytest.raises(SessionNotFound):
                self.change("reset_session", self.build_key(lane))
            return
        entry = self.change("reset_session", self.build_key(lane))
        assert entry.is_new
        assert entry.reset_had_activity == bool(lane.current.transcript)
        new = self.add_session(entry.session_id, lane)
        lane.moves.append((lane.current, new))
        self.move_lane(lane, new)

    @precondition(lambda self: self.sessions)
    @rule(number=pick, to=pick)
    def switch(self, number: int, to: int) -> None:
        (lane, _), target = self.get_lane(number), self.get_session(to)
        if lane.current is None:
            with pytest.raises(SessionNotFound):
                self.change("switch_session", self.build_key(lane), target.id)
            return
        assert self.change("switch_session", self.build_key(lane), target.id).session_id == target.id
        if lane.current is not target:
            lane.moves.append((lane.current, target))
        self.move_lane(lane, target)

    @rule(number=pick)
    def restore(self, number: int) -> None:
        lane, _ = self.get_lane(number)
        while lane.moves and lane.moves[-1][0] is lane.current:  # the session in between was deleted
            lane.moves.pop()
        if lane.current is None or not lane.moves:
            with pytest.raises(NothingToRestore):
                self.change("restore", self.build_key(lane))
            return
        previous, _ = lane.moves.pop()
        assert self.change("restore", self.build_key(lane)).session_id == previous.id
        self.move_lane(lane, previous)

    # -- sessions ---------------------------------------------------------------------------------------------

    @precondition(lambda self: self.sessions)
    @rule(number=pick, new_messages=several, turn=st.none() | turn_ids)
    def append(self, number: int, new_messages: list[MessageFields], turn: str | None) -> None:
        session = self.get_session(number)
        usage = None if turn is None else TurnUsage(turn_id=turn, input_tokens=len(session.log))
        if turn is not None:
            session.turns.setdefault(turn, len(session.log))
        seq = self.change(
            "append_to_transcript", session.id, new_messages if len(new_messages) > 1 else new_messages[0], usage=usage
        )
        assert seq == session.add(new_messages, self.now)

    @precondition(lambda self: self.sessions)
    @rule(number=pick, turns=st.integers(1, 12), length=st.integers(0, 4))
    def append_turns(self, number: int, turns: int, length: int) -> None:
        """Append complete turns, so that undo and fork meet long sections."""
        session = self.get_session(number)
        turn = [{"role": "user", "content": "question"}, *[{"role": "assistant", "content": "answer"}] * length]
        assert self.change("append_to_transcript", session.id, turn * turns) == session.add(turn * turns, self.now)

    @precondition(lambda self: self.sessions)
    @rule(number=pick, keep=st.integers(0, 40), new_messages=st.lists(messages, max_size=3))
    def rewrite(self, number: int, keep: int, new_messages: list[MessageFields]) -> None:
        session = self.get_session(number)
        rewritten = [*session.transcript[:keep], *new_messages]
        self.change("rewrite_transcript", session.id, rewritten)
        same = 0
        while same < min(len(session.transcript), len(rewritten)) and session.transcript[same] == rewritten[same]:
            same += 1
        if same == len(session.transcript) == len(rewritten):
            return
        before = session.active_at
        session.hide(session.visible[same][0] if same < len(session.visible) else len(session.log) + 1, "rewritten")
        session.add(rewritten[same:], self.now)
        session.active_at = before or self.now

    @precondition(lambda self: self.sessions)
    @rule(number=pick, turns=st.integers(1, 3) | st.integers(1, 30))
    def undo(self, number: int, turns: int) -> None:
        session = self.get_session(number)
        starts = [seq for seq, message in session.visible if message["role"] == "user"][-turns:]
        if not starts:
            with pytest.raises(NothingToUndo):
                self.change("undo", session.id, turns)
            return
        result = self.change("undo", session.id, turns)
        hidden = session.hide(starts[0], "undone")
        session.undone.append(hidden)
        assert (result.turns, result.messages) == (len(starts), len(hidden))

    @precondition(lambda self: self.sessions)
    @rule(number=pick)
    def redo(self, number: int) -> None:
        session = self.get_session(number)
        if not session.undone:
            with pytest.raises(NothingToRedo):
                self.change("redo", session.id)
            return
        redone = session.undone.pop()
        assert self.change("redo", session.id).messages == len(redone)
        for event in redone:
            event.hidden = False
        session.log.append(ModelEvent("redone"))

    @precondition(lambda self: self.sessions)
    @rule(number=pick, at=st.none() | pick)
    def fork(self, number: int, at: int | None) -> None:
        session = self.get_session(number)
        seq = None if at is None else at % (len(session.log) + 1) + 1
        copied = session.transcript
        if seq is not None:
            numbers = [each for each, _ in session.visible]
            if seq not in numbers:
                with pytest.raises(InvalidInput):
                    self.change("fork", session.id, seq)
                return
            after = [each for each, message in session.visible if each > seq and message["role"] == "user"]
            copied = [message for each, message in session.visible if not after or each < after[0]]
        new = self.change("fork", session.id, seq)
        self.has_forked = True
        fork = ModelSession(new.id, session.audience, session.shared, session)
        if session.title is not None:  # the copy keeps it, with the next number
            base, _ = split_title(session.title)
            last_number = max(number for each, number in self.list_title_slots(session) if each == base)
            fork.title = f"{re.sub(r' #[0-9]+$', '', session.title)} #{last_number + 1}"
        fork.log[:0] = [ModelEvent("message", message) for message in copied]
        fork.active_at = self.now if copied else None
        self.sessions.append(fork)
        session.log.append(ModelEvent("forked"))

    def list_title_slots(self, session: ModelSession, except_for: ModelSession | None = None) -> set[tuple[str, int]]:
        """List the titles that the people of a session have, because no two of them may be the same."""
        audiences = {session.audience}
        if not session.shared:
            audiences |= {audience for audience, members in self.members.items() if session.audience in members}
        return {
            split_title(each.title)
            for each in self.sessions
            if each.title and each.audience in audiences and each != except_for
        }

    @precondition(lambda self: self.sessions)
    @rule(number=pick, title=st.sampled_from(TITLES))
    def rename(self, number: int, title: str | None) -> None:
        session = self.get_session(number)
        taken = self.list_title_slots(session, except_for=session)
        if title is not None and title != session.title and split_title(title) in taken:
            with pytest.raises(TitleTaken):
                self.change("rename_session", session.id, title)
            return
        self.change("rename_session", session.id, title)
        if title != session.title:
            session.title = title
            session.log.append(ModelEvent("renamed"))

    @precondition(lambda self: self.sessions)
    @rule(number=pick, pinned=st.booleans())
    def pin(self, number: int, pinned: bool) -> None:
        session = self.get_session(number)
        self.change("pin", session.id, pinned)
        if session.pinned != pinned:
            session.pinned = pinned
            session.log.append(ModelEvent("pinned" if pinned else "unpinned"))

    @precondition(lambda self: self.sessions)
    @rule(number=pick, archived=st.booleans())
    def archive(self, number: int, archived: bool) -> None:
        session = self.get_session(number)
        self.change("archive", session.id, archived)
        if session.archived != archived:
            session.archived = archived
            session.log.append(ModelEvent("archived" if archived else "unarchived"))

    @precondition(lambda self: self.sessions)
    @rule(number=pick, turn=turn_ids, tokens=st.integers(1, 10**12))
    def update(self, number: int, turn: str, tokens: int) -> None:
        session = self.get_session(number)
        self.change("update_session", session.id, turn_id=turn, input_tokens=tokens)
        session.turns.setdefault(turn, tokens)

    @precondition(lambda self: self.sessions)
    @rule(number=pick)
    def delete(self, number: int) -> None:
        session = self.get_session(number)
        self.change("delete_session", session.id)
        self.sessions.remove(session)
        for lane in self.lanes:
            lane.current = None if lane.current is session else lane.current
            lane.moves = [move for move in lane.moves if session not in move]
        for each in self.sessions:
            each.parent = None if each.parent is session else each.parent
        for operation in ("load_transcript", "get_session", "undo", "redo", "fork", "delete_session"):
            with pytest.raises(SessionNotFound):
                self.call(operation, session.id)
        with pytest.raises(SessionNotFound):
            self.call("append_to_transcript", session.id, "after the deletion")

    # -- reading ----------------------------------------------------------------------------------------------

    @rule(word=st.sampled_from(WORDS))
    def search(self, word: str) -> None:
        found = self.call("search", word, limit=200)
        expected = {
            (session.id, seq)
            for session in self.sessions
            for seq, message in session.visible
            if word in get_text(message).split()
        }
        assert len(found) == len({(hit.session_id, hit.seq) for hit in found})
        assert {(hit.session_id, hit.seq) for hit in found} == expected
        # What was stored last comes first; the messages of a fork were stored with it, whatever time they have.
        for session in self.sessions:
            seqs = [hit.seq for hit in found if hit.session_id == session.id]
            assert seqs == sorted(seqs, reverse=True)
        if not self.has_forked:
            times = [hit.at for hit in found]
            assert times == sorted(times, reverse=True)

    @rule(limit=st.integers(1, 4), state=st.sampled_from(["active", "archived", "pinned"]))
    def list_pages(self, limit: int, state: str) -> None:
        listed: list[str] = []
        cursor = None
        while True:
            page = self.call("list_sessions", limit=limit, cursor=cursor, state=state)
            listed += [session.id for session in page]
            cursor = page.cursor
            if cursor is None:
                break
        by_state = {
            "active": [session for session in self.sessions if not session.archived],
            "archived": [session for session in self.sessions if session.archived],
            "pinned": [session for session in self.sessions if session.pinned],
        }
        expected = [session for session in by_state[state] if session.active_at is not None]
        assert listed == [session.id for session in sorted(expected, key=lambda session: -(session.active_at or 0))]

    @precondition(lambda self: self.sessions)
    @rule(number=pick, limit=st.integers(1, 60), before=st.none() | pick)
    def load_last_messages(self, number: int, limit: int, before: int | None) -> None:
        session = self.get_session(number)
        assert self.call("load_transcript", session.id, limit) == session.transcript[-limit:]
        end = None if before is None else before % (len(session.log) + 2)
        loaded = self.full_view.load_messages(session.id, before=end, limit=limit)
        expected = [seq for seq, _ in session.visible if end is None or seq < end]
        assert [event.seq for event in loaded] == expected[-limit:]

    @invariant()
    def store_and_model_agree(self) -> None:
        for session in self.sessions[-3:]:
            self.compare(session)
        for lane in self.lanes:
            entry = self.store.find_entry(self.build_key(lane))
            assert (entry and entry.session_id) == (lane.current and lane.current.id)

    def compare(self, model: ModelSession) -> None:
        assert self.store.load_transcript(model.id) == model.transcript
        log = self.store.load_events(model.id, limit=10_000)
        assert [(event.kind, event.hidden) for event in log] == [(event.kind, event.hidden) for event in model.log]
        session = self.store.get_session(model.id)
        assert session.message_count == len(model.transcript)
        assert session.preview == build_preview(model.transcript)
        assert session.usage.input_tokens == sum(model.turns.values())
        assert (session.title, session.pinned, session.archived) == (model.title, model.pinned, model.archived)
        assert (session.ended_at is not None) == model.ended
        assert session.shared == model.shared
        assert session.parent_id == (model.parent.id if model.parent else None)

    def teardown(self) -> None:
        for session in self.sessions:
            self.compare(session)
        assert self.store.has_any_sessions() == any(session.active_at is not None for session in self.sessions)


TABLES = (
    *("search", "delivery", "turn", "lane_move", "lane", "event", "session", "usage"),
    *("project", "identity", "audience_member", "person", "audience"),
)


def clear_store(store: SessionStore) -> None:
    def run(tx: Transaction) -> None:
        for table in TABLES:
            tx.execute(f"DELETE FROM {table}")

    store._engine.run(Write(run))


def test_the_store_behaves_like_a_simple_model(store_url: str) -> None:
    examples = settings().max_examples // (1 if store_url.startswith("sqlite:") else 4)
    loop = asyncio.new_event_loop()
    clock = FakeClock()
    try:
        with SessionStore.open(store_url, clock=clock) as store:
            machine: Any = type("Machine", (StoreMachine,), {"store": store, "clock": clock, "loop": loop})
            hypothesis_settings = settings(
                max_examples=examples, stateful_step_count=40, deadline=None, print_blob=True
            )
            run_state_machine_as_test(machine, settings=hypothesis_settings)
            assert find_inconsistencies(store_url) == []
    finally:
        loop.close()
