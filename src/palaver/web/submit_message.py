"""Passes messages and commands from the API to the inbox.

The inbox checks in its transaction whether the caller has access to the session. An owner who views everyone's sessions
(`all=true`) can't write in them: the check is for the person alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.commands.command import CommandCall, MessageCall, find_token_scopes
from palaver.core.ids import parse_session_id
from palaver.core.texts import current_language
from palaver.inbox.registry import REGISTRY
from palaver.people.model import SignedInPerson, check_permission
from palaver.sessions.conversations import build_person_source
from palaver.sessions.inbound import Inbound, Outcome, Receipt, ReplyTo
from palaver.sessions.view_wire import ReceiptJson
from palaver.web.errors import RequestRejected
from palaver.web.wire import receipt_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.sessions.turn import BusyPolicy
    from palaver.web.state import WebState


async def submit_message(
    state: WebState,
    caller: SignedInPerson,
    session_id: str,
    content: str | Sequence[Any],
    key: str,
    *,
    busy_policy: BusyPolicy | None = None,
    attachment_ids: Sequence[str] = (),
    reply_to: ReplyTo = ReplyTo.SESSION,
) -> Receipt:
    """Send a message in a session that the caller has access to."""
    inbound = Inbound(
        source=build_person_source(caller.person),
        signed_in=caller,
        language=current_language.get(),
        content=content,
        attachment_ids=attachment_ids,
        message_id=key,
        busy_policy=busy_policy,
        session_id=parse_session_id(session_id),
        reply_to=reply_to,
    )
    return await state.gateway.inbox.accept(inbound)


async def submit_command(
    state: WebState, caller: SignedInPerson, session_id: str | None, call: CommandCall | MessageCall, key: str | None
) -> Receipt:
    check_permission(caller.principal, call.command)
    inbound = Inbound(
        source=build_person_source(caller.person),
        signed_in=caller,
        language=current_language.get(),
        content="",
        message_id=key,
        session_id=None if session_id is None else parse_session_id(session_id),
    )
    REGISTRY.check_call_scopes(call, find_token_scopes(inbound))
    return await state.gateway.inbox.run_command(inbound, call)


async def run_action(
    state: WebState, caller: SignedInPerson, session_id: str, call: CommandCall, key: str | None
) -> ReceiptJson:
    """Run a command for a route that does one thing; if it can't be carried out, that is an error."""
    receipt = await submit_command(state, caller, session_id, call, key)
    if receipt.outcome is Outcome.REJECTED:
        raise RequestRejected(receipt.reply or "", **(receipt.facts or {}))
    return receipt_to_json(receipt)
