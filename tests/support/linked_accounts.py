"""Helpers for people who have an account in a chat and on the web."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.people import account_table as accounts
from palaver.people.model import Role
from palaver.platforms.loopback import LOOPBACK
from palaver.sessions.conversations import build_person_source
from palaver.sessions.inbound import Inbound

if TYPE_CHECKING:
    from typing import Any

    from palaver import SessionSource
    from palaver.core.engines.base import Transaction
    from palaver.gateway.gateway import Gateway
    from palaver.people.model import Person
    from palaver.sessions.inbound import Receipt
    from support.web import WebServer


async def open_web_account(gateway: Gateway, source: SessionSource) -> Person:
    """Let the person behind a chat account sign in on the web too."""
    person = await gateway.store.aio.get_or_create_person(source)
    if person.role is not Role.OWNER:
        person = replace(person, role=Role.MEMBER)

    def open_account(tx: Transaction) -> None:
        tx.execute("UPDATE person SET role = $2 WHERE id = $1", person.id, person.role.value)
        accounts.open_account(tx, person, to_micros(gateway.store.clock.now()))

    await gateway.store.engine.arun(Write(open_account))
    return person


async def link_chat_account(web: WebServer, name: str, account: str) -> None:
    """Link an account of the loopback platform to a person who signs in on the web."""
    client = await web.sign_in(name)
    person_id = (await client.get("/api/me")).json()["person"]["id"]

    def link(tx: Transaction) -> None:
        tx.execute(
            "INSERT INTO identity (platform, account, person_id, created_at) VALUES ($1, $2, $3, 0)",
            str(LOOPBACK),
            account,
            person_id,
        )

    await web.gateway.store.engine.arun(Write(link))


async def send_from_web(gateway: Gateway, person: Person, session_id: str | None, text: str, **fields: Any) -> Receipt:
    """Send a message as a person who has a conversation open on the web."""
    session = await gateway.store.aio.seen_by(person.principal).get(session_id or "")
    inbound = Inbound(source=build_person_source(person), content=text, session_id=session.id, **fields)
    return await gateway.inbox.accept(inbound)
