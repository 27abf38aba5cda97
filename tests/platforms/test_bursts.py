"""A burst of messages while the server is killed again and again: each is answered once, or shown as uncertain."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore

from .killed_server import WORD, KilledServer, count_open_work, fetch_all, list_live_platforms, wait_for
from .local_platform import GROUP, LocalPlatform, start_local_platforms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from palaver.core.engines.base import Row
    from support.warm_process import WarmLauncher

SECONDS_PER_ANSWER = 10.0  # on the platform with the slowest pace, and on a machine that has a lot to do
GROUP_SHARE = 1 / 9  # of the messages: a group of Telegram allows 20 a minute

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Burst:
    messages: int
    kills: int
    seed: int

    def __str__(self) -> str:
        return f"{self.messages}-messages-{self.kills}-kills-seed-{self.seed}"


SMALL = Burst(messages=18, kills=3, seed=1)
FULL = Burst(messages=90, kills=6, seed=1)
SMALL_PLATFORMS = ("telegram",)
OTHER_PLATFORMS = ("slack", "discord", "matrix", "webhook", "whatsapp", "whatsapp-web", "signal", "email")
ALL_PLATFORMS = (*SMALL_PLATFORMS, *OTHER_PLATFORMS)


@pytest.mark.parametrize(
    ("name", "burst"),
    [
        *(pytest.param(name, SMALL, id=f"{name}-{SMALL}") for name in SMALL_PLATFORMS),
        *(pytest.param(name, FULL, id=f"{name}-{FULL}", marks=pytest.mark.soak) for name in ALL_PLATFORMS),
    ],
)
async def test_each_message_of_a_burst_is_answered_once_although_the_server_is_killed(
    launcher: WarmLauncher, tmp_path: Path, name: str, burst: Burst, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(burst.seed)
    home = tmp_path / "home"
    home.mkdir()
    async with AsyncExitStack() as stack:
        [local] = await start_local_platforms(stack, tmp_path, name)
        server = KilledServer(launcher, home, [local])
        server.start()
        stack.push_async_callback(server.kill)
        store = stack.enter_context(SessionStore.open(f"sqlite:///{home}/palaver.db"))
        await wait_for(lambda: list_live_platforms(store), {str(local.platform)})
        chats = list(choose_chats(local, burst, chance))
        sending = asyncio.create_task(send(local, chats, burst, random.Random(burst.seed)))
        for _ in range(burst.kills):
            await asyncio.sleep(chance.uniform(0.2, 2.5))
            await server.kill()
            server.start()
        await sending
        seconds = SECONDS_PER_ANSWER * burst.messages
        await wait_for(lambda: count_user_messages(store), burst.messages, seconds)
        await wait_for(lambda: count_open_work(store), 0, seconds)
        fates = await list_fates(store, local, chats)
        counts = Counter(fate for fate, _ in fates.values())
        record_property("fates", dict(counts))  # in the report with --junit-xml
        assert {number: fate for number, fate in fates.items() if fate[0] not in {"answered", "uncertain"}} == {}
        assert list(local.list_problems()) == []


def choose_chats(local: LocalPlatform, burst: Burst, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Choose who writes each message, and where."""
    people = [chat for chat in local.chats if chat != GROUP]
    for _ in range(burst.messages):
        person = chance.choice(people)
        yield person, GROUP if GROUP in local.chats and chance.random() < GROUP_SHARE else person


async def send(local: LocalPlatform, chats: Sequence[tuple[str, str]], burst: Burst, chance: random.Random) -> None:
    """Send the messages while the server is killed."""
    for number, (person, chat) in enumerate(chats):
        await local.say(person, chat, f"Please note {make_word(local, number)}")
        await asyncio.sleep(chance.uniform(0, 2 * burst.kills / burst.messages))


def make_word(local: LocalPlatform, number: int) -> str:
    return f"word-{local.platform}-{number}"


def count_user_messages(store: SessionStore) -> int:
    [(count,)] = fetch_all(store, "SELECT count(*) FROM event WHERE kind = 'message' AND role = 'user'")
    return int(count)


async def list_fates(
    store: SessionStore, local: LocalPlatform, chats: Sequence[tuple[str, str]]
) -> dict[int, tuple[str, object]]:
    """Return what became of each message, by its number, with what the server has stored about it."""
    seen = {chat: [set(WORD.findall(answer)) for answer in await local.list_answers(chat)] for chat in local.chats}
    turns = await asyncio.to_thread(load_turns, store)
    fates: dict[int, tuple[str, object]] = {}
    for number, (_, chat) in enumerate(chats):
        word = make_word(local, number)
        answers = sum(word in words for words in seen[chat])
        fates[number] = find_fate(answers, turns[word]), turns[word]
    return fates


def find_fate(answers: int, stored: Sequence[Row]) -> str:
    """Return what people see: an answer; or that one is uncertain, and why."""
    if len(stored) != 1:
        return "stored several times"
    [(turn_state, _, delivery_state, delivery_error)] = stored
    if answers > 1:
        return "doubled"
    if turn_state != "done":
        return f"turn {turn_state}"
    if delivery_state == "uncertain" and delivery_error:
        return "uncertain"
    return "answered" if answers == 1 and delivery_state == "sent" else f"silent ({answers} {delivery_state})"


def load_turns(store: SessionStore) -> dict[str, list[Row]]:
    """Return the state and error of each word's turn, and of its delivery."""
    sql = """SELECT e.content, t.state, t.error, d.state, d.error FROM event e
        LEFT JOIN turn t ON t.session_no = e.session_no AND t.input_seq = e.seq
        LEFT JOIN delivery d ON d.turn_no = t.no WHERE e.kind = 'message' AND e.role = 'user'"""
    turns: dict[str, list[Row]] = {}
    for content, *fields in fetch_all(store, sql):
        for word in WORD.findall(content):
            turns.setdefault(word, []).append(tuple(fields))
    return turns
