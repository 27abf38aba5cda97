"""Memories: each belongs to the people who may see the conversation it comes from."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from palaver import GatewayConfig, Principal, Role, SessionStore, SessionView
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput, NotAllowed, NotFound, SessionNotFound
from palaver.core.ids import PersonId
from palaver.memory import table as memories
from palaver.memory.model import MAX_AGENT_MEMORY_CHARS, MAX_MEMORIES_PER_AUDIENCE, build_memory_key, matches_query
from palaver.memory.service import ConversationMemory, MemoryOperations
from palaver.memory.table import NewMemory
from palaver.sessions import table as sessions
from palaver.sessions.view import ViewScope

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionSource
    from palaver.core.engines.base import Transaction
    from palaver.testing import FakeClock

    Source = Callable[..., SessionSource]

SHARED = GatewayConfig(group_sessions_per_user=False)


def open_memory(store: SessionStore, source: SessionSource) -> ConversationMemory:
    """Open the memory of the person behind a source, in their conversation there."""
    session_id = store.record_user_message(source, "hello").session_id
    session_row = store.engine.run(Read(lambda tx: sessions.get(tx, session_id)))
    return ConversationMemory(store.engine, store.clock, store.get_or_create_person(source).principal, session_row)


async def recall_texts(memory: ConversationMemory, query: str = "", limit: int = 20) -> list[str]:
    return [each.text for each in await memory.recall(query, limit=limit)]


# -- remembering ---------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_remembered_text_is_recalled(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    memory = open_memory(store, dm())
    stored = await memory.remember("  My cat is called Ada. ")
    assert stored.text == "My cat is called Ada."
    assert stored.person_id == store.get_or_create_person(dm()).id
    assert stored.created_at == clock.now()
    assert await memory.recall("cat") == [stored]


async def test_the_same_text_twice_is_one_memory(store: SessionStore, dm: Source) -> None:
    memory = open_memory(store, dm())
    first = await memory.remember("My cat is called Ada")
    assert await memory.remember("my CAT  is\ncalled Ada") == first
    assert await recall_texts(memory) == ["My cat is called Ada"]


async def test_the_same_text_at_the_same_time_is_one_memory(open_store: OpenStore, dm: Source) -> None:
    handles = [open_memory(open_store(), dm()) for _ in range(3)]
    stored = await asyncio.gather(*(memory.remember("My cat is called Ada") for memory in handles * 4))
    assert len({each.id for each in stored}) == 1


async def test_a_text_of_maximum_length_is_stored_in_every_script(store: SessionStore, dm: Source) -> None:
    memory = open_memory(store, dm())
    generator = random.Random(7)
    long_texts = [
        "".join(chr(generator.randrange(0x4E00, 0x9FFF)) for _ in range(MAX_AGENT_MEMORY_CHARS)) for _ in range(2)
    ]
    for text in long_texts:
        await memory.remember(text)
    await memory.remember(long_texts[0])
    assert await recall_texts(memory) == [long_texts[1], long_texts[0]]
    assert (await memory.forget(long_texts[0])).text == long_texts[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty"), (" \n", "empty"), ("x" * (MAX_AGENT_MEMORY_CHARS + 1), "at most 300")],
)
async def test_an_invalid_text_is_refused(store: SessionStore, dm: Source, text: str, reason: str) -> None:
    memory = open_memory(store, dm())
    with pytest.raises(InvalidInput, match=reason):
        await memory.remember(text)
    assert await recall_texts(memory) == []


async def test_an_audience_has_a_limit_of_a_thousand_memories(store: SessionStore, dm: Source) -> None:
    memory = open_memory(store, dm())

    def fill(tx: Transaction) -> None:
        for number in range(MAX_MEMORIES_PER_AUDIENCE - 1):
            new = NewMemory(text=f"number {number}", person_id=None)
            memories.add(tx, memory._session_row.audience_no, new, number)

    store.engine.run(Write(fill))
    await memory.remember("the last")
    with pytest.raises(InvalidInput, match="already 1000 memories here"):
        await memory.remember("one too many")
    await memory.remember("The Last")  # exists already
    await memory.forget("number 7")
    await memory.remember("one too many")
    assert await recall_texts(open_memory(store, dm("bob"))) == []
    await open_memory(store, dm("bob")).remember("every audience has its own limit")


# -- recalling -----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["猫在家", "Ada likes tea 🍵", "Bob has two cats", "my cat is called Ada"]),
        ("tea", ["Ada likes tea 🍵"]),
        ("TÉA", ["Ada likes tea 🍵"]),
        ("cat", ["Bob has two cats", "my cat is called Ada"]),
        ("what is my cat called", ["my cat is called Ada", "Bob has two cats"]),
        ("cat Bob", ["Bob has two cats", "my cat is called Ada"]),
        ("猫", ["猫在家"]),
        ("🍵", ["Ada likes tea 🍵"]),
        ("a", []),
        ("dog", []),
        ("%", []),
    ],
)
async def test_recall_finds_memories_with_any_word_and_sorts_by_most_words(
    store: SessionStore, dm: Source, query: str, expected: list[str]
) -> None:
    memory = open_memory(store, dm())
    for text in ("my cat is called Ada", "Bob has two cats", "Ada likes tea 🍵", "猫在家"):
        await memory.remember(text)
    assert await recall_texts(memory, query) == expected
    assert await recall_texts(memory, query, limit=1) == expected[:1]


@pytest.mark.parametrize("limit", [0, 101, True])
async def test_a_limit_out_of_range_is_refused(store: SessionStore, dm: Source, limit: int) -> None:
    memory = open_memory(store, dm())
    with pytest.raises(InvalidInput, match="limit"):
        await memory.recall("x", limit=limit)


# -- forgetting ----------------------------------------------------------------------------------------------


async def test_a_memory_is_forgotten_by_id_or_by_text(store: SessionStore, dm: Source) -> None:
    memory = open_memory(store, dm())
    one, two = await memory.remember("one"), await memory.remember("two")
    assert await memory.forget(one.id) == one
    assert await memory.forget(" TWO ") == two
    assert await recall_texts(memory) == []
    for id_or_text in (one.id, "two", "", "a\0b"):
        with pytest.raises(NotFound):
            await memory.forget(id_or_text)


# -- boundaries ----------------------------------------------------------------------------------------------


async def test_memories_of_other_people_are_neither_recalled_nor_forgotten(store: SessionStore, dm: Source) -> None:
    ada, bob = open_memory(store, dm("ada")), open_memory(store, dm("bob"))
    stored = await ada.remember("the safe is behind the picture")
    assert await recall_texts(bob) == await recall_texts(bob, "safe") == []
    errors = []
    for memory_id in (stored.id, "m_00000000"):
        with pytest.raises(NotFound) as missing:
            await bob.forget(memory_id)
        errors.append(str(missing.value).replace(memory_id, "?"))
    assert errors[0] == errors[1]
    assert (await bob.remember(stored.text)).id != stored.id
    assert await recall_texts(ada) == [stored.text]


async def test_a_group_recalls_only_what_was_said_in_it(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    ada, bob = open_memory(store, group("ada")), open_memory(store, group("bob"))
    private = open_memory(store, _private_source(group("ada")))
    await private.remember("a secret of mine")
    stored = await ada.remember("the club meets on Monday")
    assert await recall_texts(bob) == await recall_texts(ada) == ["the club meets on Monday"]
    assert await recall_texts(bob, "secret") == await recall_texts(ada, "secret") == []
    assert (await bob.forget(stored.id)) == stored


@pytest.mark.both_engines
async def test_in_a_private_chat_a_person_recalls_what_their_groups_know_and_cannot_forget_it(
    open_store: OpenStore, group: Source
) -> None:
    store = open_store(SHARED)
    in_group = open_memory(store, group("ada"))
    await in_group.remember("the club meets on Monday")
    eve = open_memory(store, group("eve", chat="other"))
    assert await recall_texts(eve) == []
    ada = store.get_or_create_person(group("ada")).principal
    private = ConversationMemory(
        store.engine, store.clock, ada, open_memory(store, _private_source(group("ada")))._session_row
    )
    assert await recall_texts(private, "club") == ["the club meets on Monday"]
    with pytest.raises(NotAllowed, match="Forget it there"):
        await private.forget("the club meets on Monday")
    assert await recall_texts(in_group) == ["the club meets on Monday"]


def _private_source(source: SessionSource) -> SessionSource:
    """Build the source of a group member's direct messages."""
    return type(source)(source.platform, source.user_id or "", user_id=source.user_id, user_name=source.user_name)


async def test_a_person_outside_of_a_conversation_has_no_memory_in_it(store: SessionStore, dm: Source) -> None:
    ada = open_memory(store, dm("ada"))
    for principal in (store.get_or_create_person(dm("bob")).principal, Principal(PersonId("p_made_up"))):
        other = ConversationMemory(store.engine, store.clock, principal, ada._session_row)
        for act in (other.remember("x"), other.recall(), other.forget("x")):
            with pytest.raises(SessionNotFound):
                await act
    assert await recall_texts(ada) == []


# -- memories in a view -------------------------------------------------------------------------------------


def open_view(store: SessionStore, source: SessionSource) -> SessionView:
    return store.seen_by(store.get_or_create_person(source).principal)


def list_texts(view: SessionView, query: str = "") -> list[str]:
    return [each.memory.text for each in view.part(MemoryOperations).list(query)]


async def test_a_person_lists_their_own_and_shared_memories_with_author_and_other_people(
    open_store: OpenStore, dm: Source, group: Source, clock: FakeClock
) -> None:
    store = open_store(SHARED)
    in_group = open_memory(store, group("ada"))
    open_memory(store, group("bob"))
    open_memory(store, group("eve"))
    await in_group.remember("the club meets on Monday")
    clock.advance(hours=1)
    ada = open_view(store, group("ada"))
    mine = ada.part(MemoryOperations).remember("  my locker is number 7 ")
    assert mine.memory.text == "my locker is number 7"
    assert (mine.author_name, mine.shared, mine.other_names, mine.other_count) == ("Ada", False, (), 0)
    newest, older = ada.part(MemoryOperations).list()
    assert newest == mine
    assert (older.memory.text, older.author_name, older.shared) == ("the club meets on Monday", "Ada", True)
    assert (older.other_names, older.other_count) == (("Bob", "Eve"), 2)
    assert newest.memory.created_at > older.memory.created_at
    [for_bob] = open_view(store, group("bob")).part(MemoryOperations).list()
    assert (for_bob.author_name, for_bob.other_names) == ("Ada", ("Ada", "Eve"))
    assert list_texts(open_view(store, dm("stranger"))) == []


async def test_a_memory_of_a_shared_lane_is_shared_even_with_only_one_member(
    open_store: OpenStore, group: Source
) -> None:
    store = open_store(SHARED)
    await open_memory(store, group("ada")).remember("the club meets on Monday")
    [only] = open_view(store, group("ada")).part(MemoryOperations).list()
    assert (only.shared, only.other_names, only.other_count) == (True, (), 0)


async def test_a_memory_names_only_the_first_of_many_people(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    for number in range(15):
        memory = open_memory(store, group(f"user{number:02}"))
    await memory.remember("a large club")
    [entry] = open_view(store, group("user03")).part(MemoryOperations).list()
    assert entry.other_count == 14
    assert len(entry.other_names) == 10
    assert "User03" not in entry.other_names


def test_a_list_of_memories_continues_at_its_cursor(store: SessionStore, dm: Source) -> None:
    view = open_view(store, dm())
    for number in range(5):
        view.part(MemoryOperations).remember(f"number {number}")
    first = view.part(MemoryOperations).list(limit=2)
    view.part(MemoryOperations).remember("number 5")
    second = view.part(MemoryOperations).list(limit=2, cursor=first.cursor)
    third = view.part(MemoryOperations).list(limit=2, cursor=second.cursor)
    listed = [each.memory.text for each in (*first, *second, *third)]
    assert listed == [f"number {number}" for number in (4, 3, 2, 1, 0)]
    assert third.cursor is None
    for invalid in ("x", "1.2", "-1"):
        with pytest.raises(InvalidInput, match="cursor"):
            view.part(MemoryOperations).list(cursor=invalid)


def test_a_search_in_many_memories_is_paged(store: SessionStore, dm: Source) -> None:
    view = open_view(store, dm())
    audience_no = open_memory(store, dm())._session_row.audience_no

    def fill(tx: Transaction) -> None:
        for number in range(500):
            text = f"{'tea' if number % 200 == 99 else 'salt'} {number}"
            memories.add(tx, audience_no, NewMemory(text=text, person_id=None), number)

    store.engine.run(Write(fill))
    first = view.part(MemoryOperations).list("tea", limit=2)
    assert [each.memory.text for each in first] == ["tea 499", "tea 299"]
    assert first[0].author_name is None
    rest = view.part(MemoryOperations).list("tea", limit=2, cursor=first.cursor)
    assert ([each.memory.text for each in rest], rest.cursor) == (["tea 99"], None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", True),
        ("  ", True),
        ("c", True),
        ("CAT", True),
        ("called cat", True),
        ("cat dog", False),
        ("at", False),
        ("🍵", True),
        ("🐈", False),
    ],
)
def test_a_query_matches_if_each_word_begins_a_word_of_the_text(query: str, expected: bool) -> None:
    assert matches_query("My cat is called Ada 🍵", query) is expected


@pytest.mark.both_engines
async def test_a_change_is_visible_to_everyone_who_knows_the_memory(
    open_store: OpenStore, group: Source, clock: FakeClock
) -> None:
    store = open_store(SHARED)
    in_group = open_memory(store, group("ada"))
    open_memory(store, group("bob"))
    stored = await in_group.remember("the club meets on Monday")
    clock.advance(hours=1)
    changed = open_view(store, group("bob")).part(MemoryOperations).update(stored.id, " the club meets on Friday ")
    assert (changed.memory.id, changed.memory.text) == (stored.id, "the club meets on Friday")
    assert (changed.author_name, changed.memory.created_at) == ("Bob", clock.now())
    assert await recall_texts(in_group) == list_texts(open_view(store, group("ada"))) == ["the club meets on Friday"]
    with pytest.raises(NotFound):
        await in_group.forget("the club meets on Monday")
    assert (
        open_view(store, group("ada")).part(MemoryOperations).forget(stored.id).memory.text
        == "the club meets on Friday"
    )
    assert await recall_texts(in_group) == list_texts(open_view(store, group("bob"))) == []


def test_a_change_to_the_text_of_another_memory_is_refused(store: SessionStore, dm: Source) -> None:
    view = open_view(store, dm())
    tea, milk = view.part(MemoryOperations).remember("tea").memory, view.part(MemoryOperations).remember("milk").memory
    with pytest.raises(InvalidInput, match="already says this") as refused:
        view.part(MemoryOperations).update(milk.id, " TEA ")
    assert refused.value.facts == {"memory_id": tea.id}
    assert view.part(MemoryOperations).update(milk.id, "Milk").memory.text == "Milk"
    with pytest.raises(InvalidInput, match="empty"):
        view.part(MemoryOperations).update(milk.id, " ")
    assert list_texts(view) == ["Milk", "tea"]
    assert open_view(store, dm("bob")).part(MemoryOperations).remember("tea").memory.id != tea.id


def test_a_memory_whose_text_is_an_id_is_not_confused_with_the_memory_of_that_id(
    store: SessionStore, dm: Source
) -> None:
    view = open_view(store, dm())
    one = view.part(MemoryOperations).remember("one").memory
    view.part(MemoryOperations).remember(one.id)
    view.part(MemoryOperations).forget(one.id)
    assert list_texts(view) == [one.id]


@pytest.mark.parametrize("everything", [False, True], ids=["own view", "view of everything"])
def test_a_memory_of_another_person_looks_missing_even_to_the_owner(
    store: SessionStore, dm: Source, everything: bool
) -> None:
    stored = open_view(store, dm("ada")).part(MemoryOperations).remember("the safe is behind the picture").memory
    owner = store.seen_by(store.get_owner().principal, everything=everything)
    for view in (open_view(store, dm("bob")), owner):
        assert list_texts(view) == list_texts(view, "safe") == []
        for memory_id in (stored.id, "m_00000000", "a\0b"):
            with pytest.raises(NotFound) as forget_error:
                view.part(MemoryOperations).forget(memory_id)
            with pytest.raises(NotFound) as update_error:
                view.part(MemoryOperations).update(memory_id, "mine now")
            assert str(forget_error.value) == str(update_error.value) == f"There is no memory {memory_id}."
            assert forget_error.value.facts == update_error.value.facts == {"memory_id": memory_id}
    assert list_texts(open_view(store, dm("ada"))) == [stored.text]


async def test_a_view_limited_to_a_group_lists_only_what_the_group_knows(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    in_group = open_memory(store, group("ada"))
    await in_group.remember("the club meets on Monday")
    ada = store.get_or_create_person(group("ada")).principal
    mine = store.seen_by(ada).part(MemoryOperations).remember("a secret of mine").memory
    row = in_group._session_row
    shared_lane = SessionView(
        store.engine,
        ViewScope(principal=ada, clock=store.clock, audience_no=row.audience_no, lane_key=row.session.key),
    )
    own_lane = SessionView(store.engine, ViewScope(principal=ada, clock=store.clock, lane_key=row.session.key))
    assert list_texts(shared_lane) == ["the club meets on Monday"]
    assert list_texts(own_lane) == []
    for view in (shared_lane, own_lane):
        with pytest.raises(NotFound):
            view.part(MemoryOperations).forget(mine.id)


def test_a_principal_without_a_person_cannot_remember(store: SessionStore) -> None:
    stranger = store.seen_by(Principal(PersonId("p_made_up"), Role.MEMBER))
    assert list_texts(stranger) == []
    with pytest.raises(NotFound):
        stranger.part(MemoryOperations).remember("x")


@given(st.text(max_size=3000))
def test_a_memory_key_fits_into_an_index_and_ignores_surrounding_spaces(text: str) -> None:
    assert len(build_memory_key(text).encode()) <= 500
    assert build_memory_key(f" {text}\n") == build_memory_key(text)
