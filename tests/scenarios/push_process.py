"""A server that answers a person whose browser is subscribed to notifications: kills itself at a crash point.

Run as a script, with JSON as its only argument.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver import GatewayConfig, SessionStore
from palaver.app import make_push_notifier
from palaver.config import Settings
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.clock import to_micros
from palaver.core.crash_points import set_crash_hook
from palaver.core.engines.base import Read, Write
from palaver.gateway.gateway import Gateway
from palaver.people import account_table as accounts
from palaver.sessions.conversations import Conversations, build_person_source
from palaver.sessions.inbound import Inbound
from palaver.testing import ScriptedAgent
from palaver.turns import answer_recorder as finish
from support.push_service import HOST

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Person
    from palaver.push.notifier import PushNotifier

WAIT_SECONDS = 60
SIGN_IN_ID = "phone"


class LaterClock:
    """The clock of this machine, set forward: so long after the last server this one starts."""

    def __init__(self, minutes: int) -> None:
        self._offset = timedelta(minutes=minutes)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._offset


def sign_in(tx: Transaction, person: Person, now: int) -> None:
    if tx.fetch_one("SELECT 1 FROM sign_in") is None:
        accounts.open_account(tx, person, now)
        values = "($1, $1, $2, 'link', 'Phone', '::1', $3, $3)"
        tx.execute(f"INSERT INTO sign_in VALUES {values}", SIGN_IN_ID, person.id, now)


def has_work(tx: Transaction, now: int) -> bool:
    """Whether an answer is not ready, or a notification waits that no process has claimed."""
    turn = tx.fetch_one("SELECT 1 FROM turn WHERE state IN ('queued', 'running')")
    return turn is not None or tx.fetch_one("SELECT 1 FROM push_message WHERE due_at <= $1", now) is not None


async def make_notifier(store: SessionStore, folder: str, owner: Person, subscription: dict[str, Any]) -> PushNotifier:
    """Make the notifier of a server. The owner has signed in and subscribed a browser, with the first server."""
    settings = Settings(home=Path(folder), database_url="", gateway=GatewayConfig())
    await store.engine.arun(Write(lambda tx: sign_in(tx, owner, to_micros(store.clock.now()))))
    notifier = make_push_notifier(store, settings, [HOST])
    if not await notifier.is_subscribed(SIGN_IN_ID):
        keys = subscription["keys"]
        await notifier.subscribe(SIGN_IN_ID, subscription["endpoint"], keys["p256dh"], keys["auth"])
    return notifier


async def run(
    url: str, folder: str, text: str | None, minutes: int, subscription: dict[str, Any], crash_at: str | None
) -> None:
    """Start as a server does, answer a message if there is one, and stop when no notification is left to send."""
    set_crash_hook(lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == crash_at else None)
    finish.PUSH_DELAY_MICROS = 0
    with SessionStore.open(url, clock=LaterClock(minutes)) as store:
        owner = store.get_owner()
        notifier = await make_notifier(store, folder, owner, subscription)
        rules = TurnRules(model_titles=False)
        gateway = Gateway(store, ScriptedAgent(), profile=AgentProfile(), rules=rules, push=notifier, is_server=True)
        async with gateway.run(grace_seconds=5), asyncio.timeout(WAIT_SECONDS):  # its end waits for what is being sent
            if text is not None:
                session_id = (await Conversations(store).start(owner, {"title": text})).session.id
                source = build_person_source(owner)
                await gateway.inbox.accept(Inbound(source=source, content=text, session_id=session_id))
            while await store.engine.arun(Read(lambda tx: has_work(tx, to_micros(store.clock.now())))):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(run(**json.loads(sys.argv[1])))
