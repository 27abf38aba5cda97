"""How what somebody does on the page reaches the inbox, the one door for everything that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.domain.errors import InvalidInput
from palaver.domain.inbound import Inbound, Outcome, ReplyTo
from palaver.services.commands import find, parse
from palaver.services.commands.registry import check_may
from palaver.services.conversations import source_in, source_of
from palaver.web.errors import Refused
from palaver.web.message_schemas import ReceiptOut, receipt_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.account import Signed
    from palaver.domain.inbound import Receipt
    from palaver.domain.session import Session
    from palaver.domain.turn import BusyPolicy
    from palaver.web.state import WebState


async def say(
    state: WebState,
    signed: Signed,
    session_id: str,
    content: str | Sequence[Any],
    key: str,
    *,
    busy: BusyPolicy | None = None,
    attachments: Sequence[str] = (),
    reply: ReplyTo = ReplyTo.HERE,
) -> Receipt:
    """Say something in a conversation that somebody looks at, and that is theirs to speak in."""
    session = await _own(state, signed, session_id)
    inbound = Inbound(
        source=source_in(signed.person, session),
        content=await state.files.attach(signed.principal, session.id, content, attachments),
        message_id=key,
        busy=busy,
        session_id=session.id,
        reply=reply,
    )
    return await state.gateway.inbox.accept(inbound)


async def command(state: WebState, signed: Signed, session_id: str | None, text: str, key: str | None) -> Receipt:
    """Give a slash command, in a conversation or in none."""
    parsed = parse(text)
    if parsed is None:
        raise InvalidInput("text: this is not a command; messages go to /api/sessions/{id}/messages")
    known = find(parsed.name)
    if known is not None:
        check_may(signed.principal, known)
    session = None if session_id is None else await _own(state, signed, session_id)
    source = source_of(signed.person) if session is None else source_in(signed.person, session)
    inbound = Inbound(source=source, content=text, message_id=key, session_id=None if session is None else session.id)
    return await state.gateway.inbox.accept(inbound)


async def carry_out(state: WebState, signed: Signed, session_id: str, text: str, key: str | None) -> ReceiptOut:
    """Give a command on somebody's behalf; that it cannot be done is an error."""
    receipt = await command(state, signed, session_id, text, key)
    if receipt.outcome is Outcome.REFUSED:
        raise Refused(receipt.reply or "", **(receipt.facts or {}))
    return receipt_out(receipt)


async def _own(state: WebState, signed: Signed, session_id: str) -> Session:
    """The conversation, if it is this person's to speak in; an owner who looks at everybody's does not speak there."""
    return await state.gateway.store.aio.seen_by(signed.principal).get(session_id)
