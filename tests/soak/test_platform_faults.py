"""All platforms at once with random faults: every message is answered once, or reported, and known in no other place.

Both people write in all their chats, while each platform refuses, fails, loses answers and cuts connections. Every
answer repeats the word of its question, and every word of another chat that the agent has been shown.

What is open at the end must not grow with the length of the run. So people wait while several of their messages are
unanswered, no fault is added while an earlier one has not happened yet, and pauses of a minute and more are shortened.
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

from palaver.gateway.account_runner import ConnectionTiming
from palaver.platforms.email import outbound as email_outbound
from palaver.platforms.whatsapp_web import outbound as whatsapp_web_outbound
from palaver.testing import ScriptedAgent
from platforms.local_platform import ADA, BEN, GROUP
from platforms.neighborhood import WORD, open_neighborhood
from support.inbox import list_rows

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore
    from palaver.agent.base import AgentRequest
    from palaver.gateway.gateway import Gateway
    from platforms.local_platform import LocalPlatform

pytestmark = pytest.mark.soak

SOAK_SECONDS = 60 * float(os.environ.get("PALAVER_SOAK_MINUTES", "10"))
# After the last message. A retry waits for up to 64 s; one fault may still follow, and with it another such wait; then
# the chat has at most MAX_UNANSWERED answers to send, at the pace of its platform.
LAST_ANSWER_SECONDS = 300.0
MESSAGE_SECONDS = (2.0, 8.0)  # between two messages in a chat
MAX_UNANSWERED = 5  # in a chat, before people wait: WhatsApp allows an answer every six seconds in the long run
FAULT_SECONDS = (2.0, 10.0)  # between two faults of a platform
RATE_LIMIT_SECONDS = 2.0  # of platforms that do not say how long to wait, instead of a minute
TIMING = ConnectionTiming(max_pause=4.0)  # instead of minutes: connections are cut so often that they are never stable
NOTED = re.compile(r"Noted (word-[a-z0-9-]+)")
OPEN_TURNS = """SELECT address, state, COUNT(*) FROM turn WHERE state IN ('queued', 'running')
    GROUP BY address, state ORDER BY address, state"""
OPEN_DELIVERIES = """SELECT address, state, COUNT(*), MAX(attempts), MIN(due_at), MAX(error) FROM delivery
    WHERE state IN ('pending', 'sending') GROUP BY address, state ORDER BY address, state"""
ENDED = "SELECT content FROM delivery WHERE platform = $1 AND ended_at IS NOT NULL"
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

    def __init__(self, local: LocalPlatform, store: SessionStore, chance: random.Random, deadline: float) -> None:
        self.local = local
        self.words: dict[str, list[str]] = {chat: [] for chat in local.chats}
        self._store = store
        self._chance = chance
        self._deadline = deadline

    async def run(self) -> None:
        await asyncio.gather(self._disturb(), *(self._talk(chat) for chat in self.local.chats))

    async def _talk(self, chat: str) -> None:
        while await self._pause(MESSAGE_SECONDS):
            if self._count_unanswered(chat) >= MAX_UNANSWERED:
                continue
            word = f"word-{self.local.platform}-{chat}-{len(self.words[chat])}"
            self.words[chat].append(word)
            person = self._chance.choice((ADA, BEN)) if chat == GROUP else chat
            await self.local.say(person, chat, f"Please note {word}")

    async def _disturb(self) -> None:
        while await self._pause(FAULT_SECONDS):
            fault = self._chance.choice(sorted(self.local.faults))
            if self.local.has_pending_fault(fault):
                continue
            print(f"{self.local.platform}: {fault}")  # noqa: T201  (shown when the test fails)
            await self.local.disturb(fault)

    def _count_unanswered(self, chat: str) -> int:
        """Count the messages of a chat whose answers are neither delivered nor reported yet."""
        ended = {
            word for (content,) in list_rows(self._store, ENDED, self.local.platform) for word in WORD.findall(content)
        }
        return len(set(self.words[chat]) - ended)

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


async def test_random_faults_of_all_platforms_lose_and_double_nothing(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for outbound in (email_outbound, whatsapp_web_outbound):
        monkeypatch.setattr(outbound, "RATE_LIMIT_SECONDS", RATE_LIMIT_SECONDS)
    chance = random.Random(seed)
    async with open_neighborhood(tmp_path, ScriptedAgent(repeat_words), is_open=True, timing=TIMING) as here:
        store = here.web.gateway.store
        deadline = time.monotonic() + SOAK_SECONDS
        talks = [Talk(local, store, random.Random(chance.random()), deadline) for local in here.platforms]
        await asyncio.gather(*(talk.run() for talk in talks))
        said = Counter(word for talk in talks for words in talk.words.values() for word in words)
        await wait_until_finished(here.web.gateway, said)
        undelivered = {word for (content,) in list_rows(store, UNDELIVERED) for word in WORD.findall(content)}
        for talk in talks:
            await talk.check(undelivered)


async def wait_until_finished(gateway: Gateway, said: Counter[str]) -> None:
    """Wait until every message is stored, exactly once, and nothing is left to be answered or sent."""
    deadline = time.monotonic() + LAST_ANSWER_SECONDS
    while True:
        stored = Counter(word for (content,) in list_rows(gateway.store, QUESTIONS) for word in WORD.findall(content))
        open_work = describe_open_work(gateway.store)
        if stored == said and not open_work:
            return
        assert stored <= said, f"stored twice: {stored - said}"
        if time.monotonic() > deadline:
            live = ", ".join(sorted(platform for platform, _ in gateway.accounts.list_live_adapters()))
            pytest.fail("\n".join([f"not stored: {sorted(said - stored)}", f"connected: {live}", "open:", *open_work]))
        await asyncio.sleep(0.5)


def describe_open_work(store: SessionStore) -> list[str]:
    """Describe the turns and deliveries that have not ended, a line for each address and state."""
    now = time.time()
    turns = [f"{address}: {count} turns {state}" for address, state, count in list_rows(store, OPEN_TURNS)]
    deliveries = []
    for address, state, count, attempts, due_at, error in list_rows(store, OPEN_DELIVERIES):
        due = "not due" if due_at is None else f"due in {due_at / 1e6 - now:.0f} s"
        deliveries.append(f"{address}: {count} deliveries {state}, up to {attempts} attempts, {due}, error: {error}")
    return turns + deliveries
