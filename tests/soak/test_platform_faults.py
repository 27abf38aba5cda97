"""All platforms at once with random faults: every message is answered once, or reported, and known in no other place.

Both people write in all their chats, while each platform refuses, fails, loses answers and cuts connections. Every
answer repeats the word of its question, and every word of another chat that the agent has been shown.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from palaver.testing import ScriptedAgent
from platforms.local_platform import ADA, BEN, GROUP
from platforms.neighborhood import WORD, open_neighborhood
from support.inbox import list_rows

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore
    from palaver.agent.base import AgentRequest
    from platforms.local_platform import LocalPlatform

pytestmark = pytest.mark.soak

SOAK_SECONDS = 60 * float(os.environ.get("PALAVER_SOAK_MINUTES", "10"))
LAST_ANSWER_SECONDS = 300.0  # after the last fault: what a platform has refused is tried again ever later
MESSAGE_SECONDS = (2.0, 8.0)  # between two messages in a chat
FAULT_SECONDS = (2.0, 10.0)  # between two faults of a platform
NOTED = re.compile(r"Noted (word-[a-z0-9-]+)")
OPEN_WORK = """SELECT (SELECT COUNT(*) FROM turn WHERE state IN ('queued', 'running'))
    + (SELECT COUNT(*) FROM delivery WHERE state IN ('pending', 'sending'))"""
UNDELIVERED = "SELECT content FROM delivery WHERE state IN ('uncertain', 'failed')"
QUESTIONS = "SELECT content FROM event WHERE kind = 'message' AND role = 'user'"


def repeat_words(request: AgentRequest) -> str:
    """Answer with the words of the question, and with those that were said in another chat."""
    asked = WORD.findall(str(request.messages[-1]["content"]))
    own = tuple(word.rpartition("-")[0] + "-" for word in asked)
    strays = {word for word in WORD.findall(f"{request.instructions} {request.messages}") if not word.startswith(own)}
    return " ".join([*(f"Noted {word}" for word in asked), *(f"Stray {word}" for word in sorted(strays))])


class Talk:
    """What people say on one platform, and what they must see there at the end."""

    def __init__(self, local: LocalPlatform, chance: random.Random, deadline: float) -> None:
        self.local = local
        self.words: dict[str, list[str]] = {chat: [] for chat in local.chats}
        self._chance = chance
        self._deadline = deadline

    async def run(self) -> None:
        await asyncio.gather(self._disturb(), *(self._talk(chat) for chat in self.local.chats))

    async def _talk(self, chat: str) -> None:
        while await self._pause(MESSAGE_SECONDS):
            word = f"word-{self.local.platform}-{chat}-{len(self.words[chat])}"
            self.words[chat].append(word)
            person = self._chance.choice((ADA, BEN)) if chat == GROUP else chat
            await self.local.say(person, chat, f"Please note {word}")

    async def _disturb(self) -> None:
        while await self._pause(FAULT_SECONDS):
            fault = self._chance.choice(sorted(self.local.faults))
            print(f"{self.local.platform}: {fault}")  # noqa: T201  (shown when the test fails)
            await self.local.disturb(fault)

    async def _pause(self, seconds: tuple[float, float]) -> bool:
        """Wait for a random time; return whether the talk goes on."""
        await asyncio.sleep(self._chance.uniform(*seconds))
        return time.monotonic() < self._deadline

    async def check(self, undelivered: set[str]) -> None:
        for chat, words in self.words.items():
            answers = list(await self.local.list_answers(chat))
            counts = Counter(word for answer in answers for word in set(NOTED.findall(answer)))
            assert [answer for answer in answers if "Stray" in answer] == []
            assert counts.keys() <= set(words), f"{self.local.platform}: {chat} shows answers to other chats"
            doubled = {word for word, count in counts.items() if count > 1}
            assert doubled <= undelivered, f"{self.local.platform}: answered twice"
            assert set(words) - counts.keys() <= undelivered, f"{self.local.platform}: not answered"


async def test_random_faults_of_all_platforms_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with open_neighborhood(tmp_path, ScriptedAgent(repeat_words), is_open=True) as here:
        deadline = time.monotonic() + SOAK_SECONDS
        talks = [Talk(local, random.Random(chance.random()), deadline) for local in here.platforms]
        await asyncio.gather(*(talk.run() for talk in talks))
        said = Counter(word for talk in talks for words in talk.words.values() for word in words)
        store = here.web.gateway.store
        await wait_until_finished(store, said)
        undelivered = {word for (content,) in list_rows(store, UNDELIVERED) for word in WORD.findall(content)}
        for talk in talks:
            await talk.check(undelivered)


async def wait_until_finished(store: SessionStore, said: Counter[str]) -> None:
    """Wait until every message is stored, exactly once, and nothing is left to be answered or sent."""
    deadline = time.monotonic() + LAST_ANSWER_SECONDS
    while True:
        stored = Counter(word for (content,) in list_rows(store, QUESTIONS) for word in WORD.findall(content))
        [(open_work,)] = list_rows(store, OPEN_WORK)
        if stored == said and open_work == 0:
            return
        assert stored <= said, f"stored twice: {stored - said}"
        assert time.monotonic() < deadline, f"not stored: {said - stored}, {open_work} still open"
        await asyncio.sleep(0.5)
