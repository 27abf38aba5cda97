"""What is remembered belongs to those who may see the conversation it was said in."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import GatewayConfig, Principal, Role, SessionStore, SessionView
from palaver.domain.errors import InvalidInput, NoSuchSession, NotAllowed, NotFound
from palaver.domain.ids import PersonId
from palaver.domain.memory import LONGEST, MOST, has_words, memory_key
from palaver.services.memories import Memories
from palaver.storage import memories, sessions
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionSource
    from palaver.storage.engines.base import Transaction
    from palaver.testing import FakeClock

    Source = Callable[..., SessionSource]

SHARED = GatewayConfig(group_sessions_per_user=False)


def memory_of(store: SessionStore, source: SessionSource) -> Memories:
    """What whoever speaks from a source can do with memories, in the conversation they speak in."""
    said = store.record_user_message(source, "hello")
    found = store._engine.run(Read(lambda tx: sessions.get(tx, said.session_id)))
    return Memories(store._engine, store._clock, store.person_for(source).principal, found)


async def texts(memory: Memories, query: str = "", limit: int = 20) -> list[str]:
    return [each.text for each in await memory.recall(query, limit=limit)]


# -- remembering ---------------------------------------------------------------------------------------------


async def test_what_was_remembered_is_recalled(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    memory = memory_of(store, dm())
    kept = await memory.remember("  My cat is called Ada. ")
    assert kept.text == "My cat is called Ada."
    assert kept.person_id == store.person_for(dm()).id
    assert kept.created_at == clock.now()
    assert await memory.recall("cat") == [kept]


async def test_the_same_thing_twice_is_one(store: SessionStore, dm: Source) -> None:
    memory = memory_of(store, dm())
    first = await memory.remember("My cat is called Ada")
    assert await memory.remember("my CAT  is\ncalled Ada") == first
    assert await texts(memory) == ["My cat is called Ada"]


async def test_the_same_thing_at_the_same_time_is_one(open_store: OpenStore, dm: Source) -> None:
    several = [memory_of(open_store(), dm()) for _ in range(3)]
    kept = await asyncio.gather(*(memory.remember("My cat is called Ada") for memory in several * 4))
    assert len({each.id for each in kept}) == 1


async def test_the_longest_text_is_kept_in_every_script(store: SessionStore, dm: Source) -> None:
    memory = memory_of(store, dm())
    chance = random.Random(7)
    long = ["".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(LONGEST)) for _ in range(2)]
    for text in long:
        await memory.remember(text)
    await memory.remember(long[0])
    assert await texts(memory) == [long[1], long[0]]
    assert (await memory.forget(long[0])).text == long[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "empty"), (" \n", "empty"), ("x" * (LONGEST + 1), "at most 2000"), ("a\0b", "cannot be kept")],
)
async def test_what_cannot_be_remembered_is_refused(store: SessionStore, dm: Source, text: str, why: str) -> None:
    memory = memory_of(store, dm())
    with pytest.raises(InvalidInput, match=why):
        await memory.remember(text)
    assert await texts(memory) == []


async def test_there_is_room_for_a_thousand(store: SessionStore, dm: Source) -> None:
    memory = memory_of(store, dm())

    def fill(tx: Transaction) -> None:
        for number in range(MOST - 1):
            memories.remember(tx, memory._found.audience_no, None, f"number {number}", number)

    store._engine.run(Write(fill))
    await memory.remember("the last")
    with pytest.raises(InvalidInput, match="1000 things are remembered here already; forget one"):
        await memory.remember("one too many")
    await memory.remember("The Last")  # is there already
    await memory.forget("number 7")
    await memory.remember("one too many")
    assert await texts(memory_of(store, dm("bob"))) == []
    await memory_of(store, dm("bob")).remember("others have room of their own")


# -- recalling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
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
async def test_words_of_the_query_find_it_and_most_words_come_first(
    store: SessionStore, dm: Source, query: str, found: list[str]
) -> None:
    memory = memory_of(store, dm())
    for text in ("my cat is called Ada", "Bob has two cats", "Ada likes tea 🍵", "猫在家"):
        await memory.remember(text)
    assert await texts(memory, query) == found
    assert await texts(memory, query, limit=1) == found[:1]


@pytest.mark.parametrize("limit", [0, 101, True])
async def test_no_more_is_recalled_than_can_be_meant(store: SessionStore, dm: Source, limit: int) -> None:
    memory = memory_of(store, dm())
    with pytest.raises(InvalidInput, match="limit"):
        await memory.recall("x", limit=limit)


# -- forgetting ----------------------------------------------------------------------------------------------


async def test_what_is_forgotten_by_id_or_by_text_is_gone(store: SessionStore, dm: Source) -> None:
    memory = memory_of(store, dm())
    one, two = await memory.remember("one"), await memory.remember("two")
    assert await memory.forget(one.id) == one
    assert await memory.forget(" TWO ") == two
    assert await texts(memory) == []
    for what in (one.id, "two", "", "a\0b"):
        with pytest.raises(NotFound):
            await memory.forget(what)


# -- whose it is ---------------------------------------------------------------------------------------------


async def test_memories_of_others_are_neither_recalled_nor_forgotten(store: SessionStore, dm: Source) -> None:
    ada, bob = memory_of(store, dm("ada")), memory_of(store, dm("bob"))
    kept = await ada.remember("the safe is behind the picture")
    assert await texts(bob) == await texts(bob, "safe") == []
    answers = []
    for what in (kept.id, "m_00000000"):
        with pytest.raises(NotFound) as missing:
            await bob.forget(what)
        answers.append(str(missing.value).replace(what, "?"))
    assert answers[0] == answers[1]
    assert (await bob.remember(kept.text)).id != kept.id
    assert await texts(ada) == [kept.text]


async def test_a_group_remembers_for_itself(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    ada, bob = memory_of(store, group("ada")), memory_of(store, group("bob"))
    at_home = memory_of(store, _home(group("ada")))
    await at_home.remember("a secret of mine")
    kept = await ada.remember("the club meets on Monday")
    assert await texts(bob) == await texts(ada) == ["the club meets on Monday"]
    assert await texts(bob, "secret") == await texts(ada, "secret") == []
    assert (await bob.forget(kept.id)) == kept


async def test_at_home_one_knows_what_ones_groups_know_and_does_not_forget_it_for_them(
    open_store: OpenStore, group: Source
) -> None:
    store = open_store(SHARED)
    in_group = memory_of(store, group("ada"))
    await in_group.remember("the club meets on Monday")
    owner = memory_of(store, group("eve", chat="other"))
    assert await texts(owner) == []
    ada = store.person_for(group("ada")).principal
    at_home = Memories(store._engine, store._clock, ada, memory_of(store, _home(group("ada")))._found)
    assert await texts(at_home, "club") == ["the club meets on Monday"]
    with pytest.raises(NotAllowed, match="forget it there"):
        await at_home.forget("the club meets on Monday")
    assert await texts(in_group) == ["the club meets on Monday"]


def _home(source: SessionSource) -> SessionSource:
    """The direct messages of whoever speaks in a group."""
    return type(source)(source.platform, source.user_id or "", user_id=source.user_id, user_name=source.user_name)


async def test_whoever_is_not_part_of_a_conversation_has_no_memory_there(store: SessionStore, dm: Source) -> None:
    ada = memory_of(store, dm("ada"))
    for principal in (store.person_for(dm("bob")).principal, Principal(PersonId("p_made_up"))):
        other = Memories(store._engine, store._clock, principal, ada._found)
        for act in (other.remember("x"), other.recall(), other.forget("x")):
            with pytest.raises(NoSuchSession):
                await act
    assert await texts(ada) == []


# -- as a person looks at it ---------------------------------------------------------------------------------


def view_of(store: SessionStore, source: SessionSource) -> SessionView:
    return store.seen_by(store.person_for(source).principal)


def known(view: SessionView, query: str = "") -> list[str]:
    return [each.memory.text for each in view.memories(query)]


async def test_everything_one_may_know_is_listed_with_who_asked_for_it_and_who_knows_it(
    open_store: OpenStore, dm: Source, group: Source, clock: FakeClock
) -> None:
    store = open_store(SHARED)
    in_group = memory_of(store, group("ada"))
    memory_of(store, group("bob"))
    memory_of(store, group("eve"))
    await in_group.remember("the club meets on Monday")
    clock.advance(hours=1)
    ada = view_of(store, group("ada"))
    mine = ada.remember("  my locker is number 7 ")
    assert mine.memory.text == "my locker is number 7"
    assert (mine.asked_by, mine.shared, mine.others, mine.other_count) == ("Ada", False, (), 0)
    newest, older = ada.memories()
    assert newest == mine
    assert (older.memory.text, older.asked_by, older.shared) == ("the club meets on Monday", "Ada", True)
    assert (older.others, older.other_count) == (("Bob", "Eve"), 2)
    assert newest.memory.created_at > older.memory.created_at
    [for_bob] = view_of(store, group("bob")).memories()
    assert (for_bob.asked_by, for_bob.others) == ("Ada", ("Ada", "Eve"))
    assert known(view_of(store, dm("nobody"))) == []


async def test_a_place_that_others_may_join_is_shared_before_they_do(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    await memory_of(store, group("ada")).remember("the club meets on Monday")
    [only] = view_of(store, group("ada")).memories()
    assert (only.shared, only.others, only.other_count) == (True, (), 0)


async def test_of_many_who_know_something_the_first_are_named(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    for number in range(15):
        memory = memory_of(store, group(f"user{number:02}"))
    await memory.remember("a large club")
    [seen] = view_of(store, group("user03")).memories()
    assert seen.other_count == 14
    assert len(seen.others) == 10
    assert "User03" not in seen.others


def test_a_list_goes_on_where_it_ended(store: SessionStore, dm: Source) -> None:
    view = view_of(store, dm())
    for number in range(5):
        view.remember(f"number {number}")
    first = view.memories(limit=2)
    view.remember("number 5")
    second = view.memories(limit=2, cursor=first.cursor)
    third = view.memories(limit=2, cursor=second.cursor)
    listed = [each.memory.text for each in (*first, *second, *third)]
    assert listed == [f"number {number}" for number in (4, 3, 2, 1, 0)]
    assert third.cursor is None
    for wrong in ("x", "1.2", "-1"):
        with pytest.raises(InvalidInput, match="cursor"):
            view.memories(cursor=wrong)


def test_a_search_among_many_is_paged_too(store: SessionStore, dm: Source) -> None:
    view = view_of(store, dm())
    audience_no = memory_of(store, dm())._found.audience_no

    def fill(tx: Transaction) -> None:
        for number in range(500):
            memories.remember(tx, audience_no, None, f"{'tea' if number % 200 == 99 else 'salt'} {number}", number)

    store._engine.run(Write(fill))
    first = view.memories("tea", limit=2)
    assert [each.memory.text for each in first] == ["tea 499", "tea 299"]
    assert first[0].asked_by is None
    rest = view.memories("tea", limit=2, cursor=first.cursor)
    assert ([each.memory.text for each in rest], rest.cursor) == (["tea 99"], None)


@pytest.mark.parametrize(
    ("query", "found"),
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
def test_every_word_that_is_typed_begins_one_of_the_text(query: str, found: bool) -> None:
    assert has_words("My cat is called Ada 🍵", query) is found


async def test_what_is_changed_reads_so_for_all_who_know_it(
    open_store: OpenStore, group: Source, clock: FakeClock
) -> None:
    store = open_store(SHARED)
    in_group = memory_of(store, group("ada"))
    memory_of(store, group("bob"))
    kept = await in_group.remember("the club meets on Monday")
    clock.advance(hours=1)
    changed = view_of(store, group("bob")).change_memory(kept.id, " the club meets on Friday ")
    assert (changed.memory.id, changed.memory.text) == (kept.id, "the club meets on Friday")
    assert (changed.asked_by, changed.memory.created_at) == ("Bob", clock.now())
    assert await texts(in_group) == known(view_of(store, group("ada"))) == ["the club meets on Friday"]
    with pytest.raises(NotFound):
        await in_group.forget("the club meets on Monday")
    assert view_of(store, group("ada")).forget_memory(kept.id).memory.text == "the club meets on Friday"
    assert await texts(in_group) == known(view_of(store, group("bob"))) == []


def test_a_change_makes_no_second_of_the_same_thing(store: SessionStore, dm: Source) -> None:
    view = view_of(store, dm())
    tea, milk = view.remember("tea").memory, view.remember("milk").memory
    with pytest.raises(InvalidInput, match="remembered already") as refused:
        view.change_memory(milk.id, " TEA ")
    assert refused.value.facts == {"memory_id": tea.id}
    assert view.change_memory(milk.id, "Milk").memory.text == "Milk"
    with pytest.raises(InvalidInput, match="empty"):
        view.change_memory(milk.id, " ")
    assert known(view) == ["Milk", "tea"]
    assert view_of(store, dm("bob")).remember("tea").memory.id != tea.id


def test_a_memory_that_reads_like_an_id_is_not_mistaken_for_it(store: SessionStore, dm: Source) -> None:
    view = view_of(store, dm())
    one = view.remember("one").memory
    view.remember(one.id)
    view.forget_memory(one.id)
    assert known(view) == [one.id]


@pytest.mark.parametrize("everything", [False, True], ids=["as anybody", "as owner of everything"])
def test_what_others_know_does_not_exist_not_even_for_the_owner(
    store: SessionStore, dm: Source, everything: bool
) -> None:
    kept = view_of(store, dm("ada")).remember("the safe is behind the picture").memory
    owner = store.seen_by(store.owner().principal, everything=everything)
    for view in (view_of(store, dm("bob")), owner):
        assert known(view) == known(view, "safe") == []
        for memory_id in (kept.id, "m_00000000", "a\0b"):
            with pytest.raises(NotFound) as to_forget:
                view.forget_memory(memory_id)
            with pytest.raises(NotFound) as to_change:
                view.change_memory(memory_id, "mine now")
            assert str(to_forget.value) == str(to_change.value) == f"there is no memory {memory_id}"
            assert to_forget.value.facts == to_change.value.facts == {"memory_id": memory_id}
    assert known(view_of(store, dm("ada"))) == [kept.text]


async def test_where_others_read_along_a_view_knows_no_more_than_they_do(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    in_group = memory_of(store, group("ada"))
    await in_group.remember("the club meets on Monday")
    ada = store.person_for(group("ada")).principal
    mine = store.seen_by(ada).remember("a secret of mine").memory
    lane = in_group._found
    among = SessionView(store._engine, store._clock, ada, among=lane.audience_no, place=lane.session.key)
    alone = SessionView(store._engine, store._clock, ada, place=lane.session.key)
    assert known(among) == ["the club meets on Monday"]
    assert known(alone) == []
    for view in (among, alone):
        with pytest.raises(NotFound):
            view.forget_memory(mine.id)


def test_nobody_remembers_nothing(store: SessionStore) -> None:
    stranger = store.seen_by(Principal(PersonId("p_made_up"), Role.MEMBER))
    assert known(stranger) == []
    with pytest.raises(NotFound):
        stranger.remember("x")


@given(st.text(max_size=3000))
def test_a_key_fits_into_every_index_and_ignores_case_and_spaces(text: str) -> None:
    assert len(memory_key(text).encode()) <= 500
    assert memory_key(f" {text}\n") == memory_key(text)
