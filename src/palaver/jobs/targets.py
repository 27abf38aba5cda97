"""The targets of a job: whether its person may send there, and what they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.errors import InvalidInput
from palaver.core.source import ChatType
from palaver.core.timestamps import to_micros
from palaver.delivery.reachable_chats import ChatKind, list_reachable_chats, resolve_chat
from palaver.jobs.details import NamedItem
from palaver.sessions.inbound import find_delivery_address
from palaver.sessions.targets import parse_target

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource
    from palaver.delivery.reachable_chats import Origin, ReachableChat
    from palaver.people.model import Principal
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.redact import Redactor

ORIGIN = "origin"
_OWN_CONVERSATION = "only the conversation of the run"


def check_target(
    tx: Transaction,
    principal: Principal,
    text: str,
    config: GatewayConfig,
    origin: Origin,
    now: datetime,
    *,
    redactor: Redactor | None = None,
    only_chat: SessionSource | None = None,
) -> str:
    """Return a target as it is stored; raises InvalidInput, with the valid ones, unless the person may send there.

    The agent may have written it as it was shown to it, also with an id that `redactor` has hidden.
    """
    if is_own_conversation(text, origin):
        return ORIGIN
    return resolve_chat(
        tx,
        principal,
        text,
        config,
        to_micros(now),
        origin=origin,
        only_chat=only_chat,
        redactor=redactor,
        is_from_agent=True,
    ).target


def has_other_readers(
    tx: Transaction, principal: Principal, target: str, config: GatewayConfig, origin: Origin, now: datetime
) -> bool:
    """Whether people other than the job's person read what is sent to a target; also true if they are unknown."""
    if is_own_conversation(target, origin):
        return False
    chat = resolve_chat(tx, principal, target, config, to_micros(now), origin=origin)
    return chat.source is not None and (not chat.is_known or chat.source.chat_type is not ChatType.DM)


def describe_target(
    tx: Transaction, principal: Principal, text: str, config: GatewayConfig, origin: Origin, now: datetime
) -> NamedItem:
    """Say in words where a target leads; also if nothing can be sent there any more."""
    if is_own_conversation(text, origin):
        return NamedItem(name=text, words=_OWN_CONVERSATION)
    try:
        chat = resolve_chat(tx, principal, text, config, to_micros(now), origin=origin)
    except InvalidInput:
        return NamedItem(name=text, words="not reachable: it was deleted, or you no longer have access")
    return NamedItem(name=text, words=_describe_chat(chat))


def list_targets(tx: Transaction, principal: Principal, config: GatewayConfig) -> tuple[NamedItem, ...]:
    """List targets that a person can choose on the page or in the terminal."""
    local = [NamedItem(name="local", words="a file on this machine")] if config.saves_local_files else []
    chats = list_reachable_chats(tx, principal, config)
    return (
        NamedItem(name=ORIGIN, words="the conversation where the job is made"),
        *local,
        *(NamedItem(name=chat.target, words=_describe_chat(chat)) for chat in chats),
    )


def is_own_conversation(text: str, origin: Origin) -> bool:
    """Whether a target is the origin of a job that was made outside of any chat and conversation."""
    if origin.session_no is not None or find_delivery_address(origin.source) is not None:
        return False
    try:
        return parse_target(text).kind == ORIGIN
    except InvalidInput:
        return False


def _describe_chat(chat: ReachableChat) -> str:
    if chat.kind is ChatKind.LOCAL:
        return "a file on this machine"
    if chat.kind is ChatKind.SESSION or chat.source is None:
        return "the conversation where the job was made"
    source = chat.source
    name = f" “{chat.name}”" if chat.name else f" {source.chat_id}"
    thread = f", thread {source.thread_id}" if source.thread_id else ""
    return f"{source.platform.label}{name}{thread}"
