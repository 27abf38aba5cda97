"""People who are known in a chat and on the web."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.domain.inbound import Inbound
from palaver.domain.person import Role
from palaver.platforms.loopback import LOOPBACK
from palaver.services.conversations import source_in
from palaver.storage import accounts
from palaver.storage.engines.base import Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from typing import Any

    from palaver import SessionSource
    from palaver.domain.inbound import Receipt
    from palaver.domain.person import Person
    from palaver.services.gateway import Gateway
    from palaver.storage.engines.base import Transaction
    from support.web import Web


async def on_the_web(gateway: Gateway, source: SessionSource) -> Person:
    """Let whoever speaks from a source sign in on the web too."""
    known = await gateway.store.aio.person_for(source)
    person = known if known.role is Role.OWNER else replace(known, role=Role.MEMBER)

    def let_in(tx: Transaction) -> None:
        tx.run("UPDATE person SET role = $2 WHERE id = $1", person.id, person.role.value)
        accounts.open_account(tx, person, to_micros(gateway.store.clock.now()))

    await gateway.store.engine.arun(Write(let_in))
    return person


async def in_the_chat(web: Web, name: str, account: str) -> None:
    """Let an account of the loopback platform be the one of somebody who signs in on the web."""
    client = await web.client(name)
    person_id = (await client.get("/api/me")).json()["person"]["id"]

    def link(tx: Transaction) -> None:
        tx.run(
            "INSERT INTO identity (platform, account, person_id, created_at) VALUES ($1, $2, $3, 0)",
            str(LOOPBACK),
            account,
            person_id,
        )

    await web.gateway.store.engine.arun(Write(link))


async def write(gateway: Gateway, person: Person, session_id: str | None, text: str, **fields: Any) -> Receipt:
    """Somebody writes on the web, in a conversation that they look at."""
    session = await gateway.store.aio.seen_by(person.principal).get(session_id or "")
    inbound = Inbound(source=source_in(person, session), content=text, session_id=session.id, **fields)
    return await gateway.inbox.accept(inbound)
