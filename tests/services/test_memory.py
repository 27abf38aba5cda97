"""What is remembered belongs to those who may see the conversation it was said in."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import GatewayConfig, Principal, SessionStore
from palaver.domain.errors import InvalidInput, NoSuchSession, NotAllowed, NotFound
from palaver.domain.ids import PersonId
from palaver.domain.memory import LONGEST, MOST, memory_key
from palaver.services.memory import Memories
from palaver.storage import memories, sessions
from palaver.storage.engine import Read, Write

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionSource
    from palaver.storage.engine import Transaction
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


async def test_a_group_remembers_for_itself(open_store: OpenStore, dm: Source, group: Source) -> None:
    store = open_store(SHARED)
    ada, bob = memory_of(store, group("ada")), memory_of(store, group("bob"))
    at_home = memory_of(store, dm("ada"))
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


@given(st.text(max_size=3000))
def test_a_key_fits_into_every_index_and_ignores_case_and_spaces(text: str) -> None:
    assert len(memory_key(text).encode()) <= 500
    assert memory_key(f" {text}\n") == memory_key(text)
