"""The door for programs that speak as OpenAI's clients do: which conversation a call belongs to, and its answer.

A call brings a whole conversation and wants one answer. Here the conversation is ours: of what a call brings, the last
message is said in it, by the same inbox as everywhere. What came before is stored only as the beginning of a new
conversation, and otherwise not at all, so nobody writes into the past of a conversation.

Which one it is: the one that is named by its id; the one that goes on under the caller's own name for it; or the one
whose words are exactly those the call brings, which is how such clients go on with a conversation. Otherwise a new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palaver.domain.draft import START, Draft, messages_of
from palaver.domain.errors import InvalidInput, StoreClosed
from palaver.domain.feed_events import Drafted, Happened, TurnChanged
from palaver.domain.inbound import Inbound, Outcome
from palaver.domain.message import Message, text_of_parts
from palaver.domain.source import ChatType, Platform, SessionSource
from palaver.domain.text import storable
from palaver.domain.turn import BusyPolicy
from palaver.services.conversations import source_in
from palaver.services.inbox import LONGEST
from palaver.storage import append, completion_queries, lanes, session_settings, sessions
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from palaver.domain.inbound import Receipt
    from palaver.domain.person import Person
    from palaver.domain.session import Session
    from palaver.domain.turn import Turn
    from palaver.domain.usage import TurnUsage
    from palaver.services.attachments import Attachments
    from palaver.services.gateway import Gateway
    from palaver.storage.engines.base import Transaction

MOST_MESSAGES = 2000  # in one call
_SAID = frozenset({"system", "user", "assistant"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image that came with the last message."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a program wants to be answered."""

    before: Sequence[Message]  # what it says was said before
    content: str
    images: Sequence[Image] = ()
    model: str | None = None  # None: whatever the conversation uses
    session_id: str | None = None
    name: str | None = None  # the caller's own name for the conversation
    key: str | None = None  # the same one twice is one message


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A call that was taken, and where."""

    session_id: str
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How a turn ended, and all that was said."""

    text: str
    turn: Turn | None  # None when the gateway itself has answered
    usage: TurnUsage


class Completions:
    """Takes calls and gives answers."""

    def __init__(self, gateway: Gateway, files: Attachments) -> None:
        self._gateway = gateway
        self._store = gateway.store
        self._engine = gateway.store.engine
        self._files = files

    async def ask(self, person: Person, call: Call) -> Accepted:
        """Say the last message of a call in the conversation it belongs to, durably."""
        _check(call)
        if call.model is not None:
            self._gateway.agent.check_model(call.model)
        images = [
            await self._files.take(person.principal, f"image {number}", _once(image.data))
            for number, image in enumerate(call.images, 1)
        ]
        session = await self._engine.arun(Write(lambda tx: self._placed(tx, person, call)))
        content = await self._files.attach(person.principal, session.id, call.content, [each.id for each in images])
        receipt = await self._gateway.inbox.accept(
            Inbound(
                source=source_in(person, session, Platform.API),
                content=content,
                message_id=call.key or secrets.token_hex(16),
                session_id=session.id,
                busy=BusyPolicy.QUEUE,
            )
        )
        return Accepted(session_id=receipt.session_id or session.id, receipt=receipt)

    # -- which conversation --------------------------------------------------------------------------------

    def _placed(self, tx: Transaction, person: Person, call: Call) -> Session:
        now = self._store.clock.now()
        if call.session_id is not None:
            found = sessions.seen(tx, call.session_id, person.id)
        else:
            found = sessions.get(tx, self._entered(tx, person, call))
        if call.model is not None:
            session_settings.choose_model(tx, found.no, call.model, to_micros(now), person.id)
        return found.session

    def _entered(self, tx: Transaction, person: Person, call: Call) -> str:
        """The conversation that the lane of a call is on. A new one begins with what the call says came before."""
        arrival = self._store.arrival(_source(person, call), self._store.clock.now())
        entry = lanes.enter(tx, arrival)
        named = call.name is not None or call.key is not None
        if not named and entry.session.message_count and not self._reads_like(tx, entry.session, call.before):
            entry = lanes.enter(tx, arrival, force_new=True)
        if call.before and not entry.session.message_count:
            append.append(tx, entry.session_id, call.before, arrival.at, human=False)
        return entry.session_id

    def _reads_like(self, tx: Transaction, session: Session, before: Sequence[Message]) -> bool:
        said = completion_queries.said_in(tx, session.id, MOST_MESSAGES)
        if said is None:
            return False
        return _words(event.message for event in said if event.message is not None) == _words(before)

    # -- its answer ----------------------------------------------------------------------------------------

    async def listen(self, person: Person, accepted: Accepted) -> AsyncGenerator[str | Answered, None]:
        """The answer as it grows, and then how it ended. It is given whether or not anybody listens."""
        receipt = accepted.receipt
        if receipt.turn_id is None or receipt.seq is None:
            raise InvalidInput("this message has no answer of its own")
        said, final, draft = "", list[Message](), Draft()
        follow = self._gateway.feed.follow(person.principal, accepted.session_id, after=receipt.seq - 1)
        async with contextlib.aclosing(follow) as items:
            async for item in items:
                match item:
                    case Drafted(turn_id, pieces, afresh) if turn_id == receipt.turn_id:
                        draft = Draft() if afresh else draft
                        draft.extend(pieces)
                        text = _spoken(draft)
                        if text.startswith(said) and text != said:
                            yield text[len(said) :]
                            said = text
                    case Happened(event) if event.message is not None and event.message.role == "assistant":
                        if event.message.extra.get("answers", 0) >= receipt.seq:
                            final.append(event.message)
                    case TurnChanged(turn) if turn.id == receipt.turn_id and turn.state.ended:
                        text = _joined(message.text for message in _of(turn, final))
                        if text != said:  # what was said here last, or said anew by another process
                            yield text[len(said) :] if text.startswith(said) else f"\n\n{text}"
                        yield Answered(text=text, turn=turn, usage=await self._used(turn))
                        return
        raise StoreClosed("the server stops; the answer is kept in its conversation")

    async def _used(self, turn: Turn) -> TurnUsage:
        return await self._engine.arun(Read(lambda tx: completion_queries.used_by(tx, turn.id, turn.session_id)))


def is_answered(receipt: Receipt) -> bool:
    """Whether the agent answers, and not the gateway itself."""
    return receipt.turn_id is not None and receipt.seq is not None and receipt.outcome is not Outcome.COMMAND


def _check(call: Call) -> None:
    if len(call.before) > MOST_MESSAGES:
        raise InvalidInput(f"messages: at most {MOST_MESSAGES} at once")
    longest = max([len(call.content), *(len(message.text) for message in call.before)])
    if longest > LONGEST:
        raise InvalidInput(f"messages: one of them has {longest} characters, and {LONGEST} is the most I take")


def _source(person: Person, call: Call) -> SessionSource:
    """A lane of this person's own: by the caller's name for it, by the key of the call, or by how it begins."""
    if call.name is not None:
        kind, name = "name", call.name
    elif call.key is not None:
        kind, name = "key", call.key
    else:
        first = [*call.before, Message("user", call.content)]
        upto = next(place for place, message in enumerate(first) if message.role == "user")
        kind, name = "words", repr(_words(first[: upto + 1]))
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:24]
    chat_id = f"{person.id}.{kind}.{digest}"
    return SessionSource(Platform.API, chat_id, chat_type=ChatType.DM, user_id=person.id, user_name=person.name)


def _words(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """What was said, by whom, as a client of such an API sees it: an answer is one message, and tools are not seen."""
    found: list[tuple[str, str]] = []
    for message in messages:
        text = message.text.strip()
        if message.role not in _SAID or not text:
            continue
        if message.role == "assistant" and found and found[-1][0] == "assistant":
            found[-1] = ("assistant", f"{found[-1][1]}\n\n{text}")
        else:
            found.append((message.role, text))
    return found


def _spoken(draft: Draft) -> str:
    messages = messages_of(draft.since(START))
    return _joined(message["content"] for message in messages if message["role"] == "assistant")


def _joined(texts: Iterable[Any]) -> str:
    return "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())


def _of(turn: Turn, messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.extra.get("answers", 0) <= turn.input_seq]


def message_of(role: str, content: object) -> Message | None:
    """A message that a call brings, as it is kept at the beginning of a conversation; None when it says nothing.

    Tools and their results are left out: they are the caller's, and not there for this agent.
    """
    kept = "system" if role == "developer" else role
    text = content if isinstance(content, str) else text_of_parts(_parts(content))
    return Message(kept, storable(text)) if kept in _SAID and text.strip() else None


def _parts(content: object) -> list[Any]:
    if not isinstance(content, list | tuple):
        return []
    return [
        {"type": "text", "text": "(an image)"}
        if isinstance(part, Mapping) and part.get("type") == "image_url"
        else part
        for part in content
    ]


async def _once(data: bytes) -> AsyncGenerator[bytes, None]:
    yield data
