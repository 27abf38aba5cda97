"""Calls of programs that use OpenAI's chat completions API: which conversation a call belongs to, and its answer.

A call sends a complete conversation and expects one answer. Palaver stores conversations itself: only the last message
of a call goes to the inbox, like any other message. The earlier messages are stored only if they start a new
conversation, so no call can rewrite the past of an existing one.

The call belongs to the conversation with the given id; else to the one with the caller's own name for it; else to the
one whose texts are exactly the earlier messages, which is how such clients continue; else to a new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from palaver.agent.profiles import check_model_choice
from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import InvalidInput, StoreClosed
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.text import make_storable
from palaver.inbox import MAX_MESSAGE_CHARS
from palaver.live.feed_events import AnswerTextStream, DraftGrew, EventAppended, TurnChanged
from palaver.sessions import (
    lanes_table as lanes,
    log_table as events,
    message_table as message_log,
    settings_table as session_settings,
    table as sessions,
    usage_table,
)
from palaver.sessions.conversations import build_person_source
from palaver.sessions.inbound import Inbound, Outcome, Receipt
from palaver.sessions.message import Message, join_text_parts
from palaver.sessions.turn import BusyPolicy, Turn

if TYPE_CHECKING:
    from palaver.gateway.gateway import Gateway
    from palaver.media.attachments import Attachments
    from palaver.people.model import Person, SignedInPerson
    from palaver.sessions.model import Session
    from palaver.sessions.usage import TurnUsage

MAX_MESSAGES = 2000  # in one call
MAX_CALL_CHARS = 4_000_000  # of all messages of one call together
_STORED_ROLES = frozenset({"system", "user", "assistant"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionCall:
    """One request for an answer."""

    earlier_messages: Sequence[Message]
    content: str  # of the last message
    images: Sequence[bytes] = ()  # that came with it
    model: str | None = None  # None: the model of the conversation
    session_id: str | None = None
    conversation_name: str | None = None  # the caller's own name for the conversation
    idempotency_key: str | None = None  # two calls with the same key are one message


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionResult:
    """The complete answer, and how its turn ended."""

    text: str
    turn: Turn | None  # None if the gateway itself has answered
    usage: TurnUsage


class Completions:
    def __init__(self, gateway: Gateway, files: Attachments) -> None:
        self._gateway = gateway
        self._store = gateway.store
        self._engine = gateway.store.engine
        self._files = files

    async def submit(self, caller: SignedInPerson, call: CompletionCall) -> tuple[str, Receipt]:
        """Send the last message of a call to its conversation, and store it durably; return the id of that, too."""
        person = caller.person
        _check_call(call)
        if call.model is not None:
            check_model_choice(self._gateway.agent, self._gateway.rules, person.role, call.model)
        images = [
            await self._files.receive(person.principal, f"image {number}", _stream_once(image))
            for number, image in enumerate(call.images, 1)
        ]
        session = await self._engine.arun(Write(lambda tx: self._find_session(tx, person, call)))
        receipt = await self._gateway.inbox.accept(
            Inbound(
                source=build_person_source(person, Platform.API),
                signed_in=caller,
                content=call.content,
                attachment_ids=[image.id for image in images],
                message_id=call.idempotency_key or secrets.token_hex(16),
                session_id=session.id,
                busy_policy=BusyPolicy.QUEUE,
            )
        )
        return receipt.session_id or session.id, receipt

    def _find_session(self, tx: Transaction, person: Person, call: CompletionCall) -> Session:
        if call.session_id is not None:
            row = sessions.get_visible(tx, call.session_id, person.id)
        else:
            row = sessions.get(tx, self._enter_lane(tx, person, call))
        if call.model is not None:
            now = to_micros(self._store.clock.now())
            session_settings.change(tx, row.no, "model", call.model, now, person.id)
        return row.session

    def _enter_lane(self, tx: Transaction, person: Person, call: CompletionCall) -> str:
        """Return the id of the lane's session; a new session starts with the earlier messages of the call."""
        arrival = self._store.build_arrival(_build_source(person, call))
        entry = lanes.get_or_create_entry(tx, arrival)
        has_name = call.conversation_name is not None or call.idempotency_key is not None
        if (
            not has_name
            and entry.session.message_count
            and not _is_continuation(tx, entry.session, call.earlier_messages)
        ):
            entry = lanes.get_or_create_entry(tx, arrival, force_new=True)
        if call.earlier_messages and not entry.session.message_count:
            message_log.append_messages(
                tx, entry.session_id, call.earlier_messages, arrival.now_micros, from_human=False
            )
        return entry.session_id

    async def stream_answer(
        self, person: Person, session_id: str, receipt: Receipt
    ) -> AsyncGenerator[str | CompletionResult, None]:
        """Yield pieces of the answer, then its result. The agent answers whether or not the caller keeps listening."""
        if receipt.turn_id is None or receipt.seq is None:
            raise InvalidInput("This message gets no answer of its own.")
        stream = AnswerTextStream(receipt.seq)
        follow = self._gateway.feed.follow(person.principal, session_id, after=receipt.seq - 1)
        async with contextlib.aclosing(follow) as items:
            async for item in items:
                match item:
                    case DraftGrew(turn_id) if turn_id == receipt.turn_id:
                        if text := stream.grow_draft(item):
                            yield text
                    case EventAppended(event) if event.message is not None:
                        stream.add_message(event.message)
                    case TurnChanged(turn) if turn.id == receipt.turn_id and turn.state.has_ended:
                        if text := stream.end(turn):
                            yield text
                        load = Read(lambda tx: usage_table.get_turn_usage(tx, turn.id, turn.session_id))
                        yield CompletionResult(text=stream.text, turn=turn, usage=await self._engine.arun(load))
                        return
        raise StoreClosed("The server is shutting down. You can read the answer in its conversation later.")


def has_agent_answer(receipt: Receipt) -> bool:
    """Return whether the agent answers, and not the gateway itself."""
    return receipt.turn_id is not None and receipt.seq is not None and receipt.outcome is not Outcome.COMMAND


def _check_call(call: CompletionCall) -> None:
    if len(call.earlier_messages) > MAX_MESSAGES:
        raise InvalidInput(f"messages: the limit is {MAX_MESSAGES} in one call.")
    lengths = [len(call.content), *(len(message.text) for message in call.earlier_messages)]
    if max(lengths) > MAX_MESSAGE_CHARS:
        raise InvalidInput(f"messages: one has {max(lengths)} characters. The limit is {MAX_MESSAGE_CHARS}.")
    if sum(lengths) > MAX_CALL_CHARS:
        raise InvalidInput(
            f"messages: {sum(lengths)} characters in all. The limit is {MAX_CALL_CHARS}. Leave out older messages."
        )


def _build_source(person: Person, call: CompletionCall) -> SessionSource:
    """Build the source of a call's lane: from the caller's name for it, the key of the call, or its first texts."""
    if call.conversation_name is not None:
        kind, name = "name", call.conversation_name
    elif call.idempotency_key is not None:
        kind, name = "key", call.idempotency_key
    else:
        messages = [*call.earlier_messages, Message("user", call.content)]
        first_question = next(index for index, message in enumerate(messages) if message.role == "user")
        kind, name = "words", repr(_list_texts(messages[: first_question + 1]))
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:24]
    chat_id = f"{person.id}.{kind}.{digest}"
    return SessionSource(Platform.API, chat_id, chat_type=ChatType.DM, user_id=person.id, user_name=person.name)


def _is_continuation(tx: Transaction, session: Session, earlier_messages: Sequence[Message]) -> bool:
    """Return whether the session has exactly the texts that the client has seen so far."""
    stored = events.list_messages(tx, sessions.get(tx, session.id).no, limit=MAX_MESSAGES + 1)
    if len(stored) > MAX_MESSAGES:
        return False
    texts = _list_texts(event.message for event in stored if event.message is not None)
    return texts == _list_texts(earlier_messages)


def _list_texts(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """List role and text as clients of this API see them: an answer is one message, and tool calls are not shown."""
    texts: list[tuple[str, str]] = []
    for message in messages:
        text = message.text.strip()
        if message.role not in _STORED_ROLES or not text:
            continue
        if message.role == "assistant" and texts and texts[-1][0] == "assistant":
            texts[-1] = ("assistant", f"{texts[-1][1]}\n\n{text}")
        else:
            texts.append((message.role, text))
    return texts


def parse_message(role: str, content: object) -> Message | None:
    """Parse one of the earlier messages of a call; None if it has no text to store.

    Tool calls and their results are left out: the tools are the caller's, and this agent does not have them.
    """
    stored_role = "system" if role == "developer" else role
    text = content if isinstance(content, str) else join_text_parts(_replace_images(content))
    if stored_role not in _STORED_ROLES or not text.strip():
        return None
    return Message(stored_role, make_storable(text))


def _replace_images(content: object) -> list[Any]:
    if not isinstance(content, list | tuple):
        return []
    return [
        {"type": "text", "text": "(an image)"}
        if isinstance(part, Mapping) and part.get("type") == "image_url"
        else part
        for part in content
    ]


async def _stream_once(data: bytes) -> AsyncGenerator[bytes, None]:
    yield data
