"""`palaver chat --temporary`: a conversation that is only in the memory of this process.

Always true: nothing that was said is stored: no conversation, no search, no memory, no input history. It is gone when
the process ends.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from palaver.agent.base import Notice, ReasoningDelta, TextDelta
from palaver.cli.chat.feed_presenter import AnswerOutput, Note
from palaver.cli.chat.one_shot import Answer
from palaver.cli.output import print_hint
from palaver.core.errors import PalaverError
from palaver.core.source import Platform
from palaver.inbox.temporary import (
    MAX_CONVERSATION_CHARS,
    MAX_MESSAGES,
    TemporaryMessage,
    TemporaryQuestion,
)
from palaver.sessions.draft import Piece, PieceKind
from palaver.sessions.turn import TurnState
from palaver.turns.commands.settings import DEFAULT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.cli.chat import ChatOptions
    from palaver.gateway.gateway import Gateway
    from palaver.people.model import Person
    from palaver.turns.answer_end import AnswerEnded

BANNER: Final = "Temporary conversation: not saved, not in search or memory. It's gone when you quit."
STOPPED_TEXT: Final = "stopped"


class TemporaryTerminalChat:
    def __init__(self, gateway: Gateway, owner: Person, options: ChatOptions, output: AnswerOutput) -> None:
        self._gateway = gateway
        self._owner = owner
        self._options = options
        self._output = output
        self._messages: list[TemporaryMessage] = []
        self._asking: asyncio.Task[AnswerEnded] | None = None

    @property
    def is_answering(self) -> bool:
        return self._asking is not None

    def stop(self) -> None:
        """Stop the running answer. What was said so far stays in the conversation."""
        if self._asking is not None:
            self._asking.cancel()

    async def ask(self, text: str) -> Answer:
        self._messages.append(TemporaryMessage(role="user", text=text))
        self._drop_oldest()
        pieces: list[str] = []
        self._asking = asyncio.create_task(self._collect(pieces))
        try:
            end = await self._asking
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the whole chat ends, and not just this answer
                self._asking.cancel()
                raise
            return self._end(pieces, TurnState.INTERRUPTED, STOPPED_TEXT)
        except PalaverError:
            self._messages.pop()  # it was not accepted
            raise
        finally:
            self._asking = None
        answer = self._end(pieces, end.state, end.error)
        answer.usage = {
            "input_tokens": end.usage.input_tokens,
            "output_tokens": end.usage.output_tokens,
            "cost_usd": None if end.usage.cost is None else str(end.usage.cost),
        }
        return answer

    async def _collect(self, pieces: list[str]) -> AnswerEnded:
        question = TemporaryQuestion(
            messages=tuple(self._messages),
            profile=None if self._options.profile == DEFAULT else self._options.profile,
            personality=None if self._options.personality == DEFAULT else self._options.personality,
            platform=Platform.LOCAL,
        )
        async with aclosing(await self._gateway.temporary_chats.ask(self._owner, question)) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        pieces.append(text)
                        self._output.show(Piece(PieceKind.TEXT, text))
                    case ReasoningDelta(text):
                        self._output.show(Piece(PieceKind.REASONING, text))
                    case Notice(text):
                        self._output.show(Note(text))
                    case _:
                        return event
        raise AssertionError("an answer has an end")

    def _end(self, pieces: list[str], state: TurnState, error: str) -> Answer:
        self._output.end()
        text = "".join(pieces)
        if text.strip():
            is_interrupted = state is not TurnState.DONE
            self._messages.append(TemporaryMessage(role="assistant", text=text, is_interrupted=is_interrupted))
        return Answer(state=state.value, text=text, error=error or None)

    def _drop_oldest(self) -> None:
        """Forget the oldest messages of a very long conversation, and say so."""
        count = len(self._messages)
        while len(self._messages) > 1 and (
            len(self._messages) > MAX_MESSAGES
            or sum(len(message.text) for message in self._messages) > MAX_CONVERSATION_CHARS
        ):
            del self._messages[: max(1, len(self._messages) // 4)]
        if len(self._messages) < count:
            self._output.show(Note("This conversation is very long, so the agent no longer gets its oldest messages."))


async def read_prompt_lines() -> AsyncIterator[str]:
    """Yield what a person types at a prompt. Earlier inputs of this chat come back with the up arrow, others never."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import InMemoryHistory

    session: PromptSession[str] = PromptSession(history=InMemoryHistory())
    while True:
        try:
            text = await session.prompt_async([("bold ansicyan", "› ")], handle_sigint=False)
        except KeyboardInterrupt:
            print_hint("Press Ctrl-D to quit. The conversation is gone then.")
            continue
        except EOFError:
            return
        if text.strip():
            yield text
