"""A process that sends one request with a key, and kills itself after a number of statements, or after the commit.

Run as a script: database URL, who sends it, what to send, number of statements. It prints the outcome.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import Any

from palaver import Platform, SessionSource, SessionStore
from palaver.agent.profiles import CurrentSettings
from palaver.config.agent_rules import TurnRules
from palaver.core.engines.base import Read, Write
from palaver.core.ids import PersonId
from palaver.inbox import Inbox
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.conversations import Conversations, build_person_source
from palaver.sessions.inbound import Inbound
from palaver.sessions.turn import BusyPolicy
from palaver.testing import ScriptedAgent
from scenarios.version_process import KillingTransaction
from support.crashing import kill_at

KEY = "once"
TEXT = "Exactly once, please."
AFTER_COMMIT = "commit"  # instead of a number of statements
WEBHOOK = SessionSource(Platform.WEBHOOK, "backups", user_id="default", user_name="Backups")


def kill_after(engine: Any, statements: int) -> None:
    """Let every write of an engine kill this process after so many of its statements."""
    run_work = engine.arun

    async def arun(work: Any) -> Any:
        if isinstance(work, Write):
            run = work.run
            work = replace(work, run=lambda tx: run(KillingTransaction(tx, statements)), single_statement=None)
        return await run_work(work)

    engine.arun = arun


async def send(store: SessionStore, person_id: str, action: str) -> str:
    row = store.engine.run(Read(lambda tx: people.find_by_id(tx, PersonId(person_id))))
    assert row is not None
    person = row.person
    page = build_person_source(person)
    inbox = Inbox(store, CurrentSettings(ScriptedAgent(), TurnRules(messages_per_minute={Role.GUEST: 1})))
    if action == "conversation":
        started = await Conversations(store).start(person, {"title": TEXT}, key=KEY)
        return started.session.id
    requests: dict[str, tuple[SessionSource, str, BusyPolicy | None]] = {
        "message": (page, TEXT, BusyPolicy.REJECT),
        "command": (page, "/undo", None),
        "webhook": (WEBHOOK, TEXT, None),
    }
    source, text, busy_policy = requests[action]
    receipt = await inbox.accept(Inbound(source=source, content=text, message_id=KEY, busy_policy=busy_policy))
    return str(receipt.outcome)


def main(url: str, person_id: str, action: str, statements: str) -> None:
    with SessionStore.open(url) as store:
        if statements == AFTER_COMMIT:
            kill_at("inbox.accepted")
        else:
            kill_after(store.engine, int(statements))
        sys.stdout.write(asyncio.run(send(store, person_id, action)))


if __name__ == "__main__":
    main(*sys.argv[1:])
