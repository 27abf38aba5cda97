"""A process that answers a question of a temporary conversation: kills itself at a crash point.

Run as a script: the store, and the crash point.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

from palaver import SessionStore
from palaver.agent.base import TextDelta, UsageReport
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.gateway.gateway import Gateway
from palaver.inbox.temporary import TemporaryMessage, TemporaryQuestion
from palaver.testing import ScriptedAgent
from support.crashing import kill_at
from support.metered_work import NANO_PER_TOKEN, make_call, make_usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest

SECRET = "xylophone"


async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
    """Make one metered call, and say the secret."""
    held = await request.meter.hold(make_call(10, 100))
    yield TextDelta(SECRET)
    used = make_usage(3, 2)
    await held.settle(used)
    yield UsageReport(used, held.is_recorded)


async def run(url: str, point: str) -> None:
    kill_at(point)
    with SessionStore.open(url) as store:
        agent = ScriptedAgent(answer, price=NANO_PER_TOKEN)
        gateway = Gateway(store, agent, profile=AgentProfile(), rules=TurnRules(model_titles=False))
        async with gateway.run():
            question = TemporaryQuestion(messages=[TemporaryMessage(role="user", text=f"where is my {SECRET}?")])
            async with aclosing(await gateway.temporary_chats.ask(store.get_owner(), question)) as events:
                async for _ in events:
                    pass


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
