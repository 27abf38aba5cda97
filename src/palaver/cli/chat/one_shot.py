"""One message and its answer, for scripts: `-m`, and every line of a pipe.

The answer goes to standard output and nothing else does; what there is to know besides is told on standard error.
How it ended is the exit code.
"""

from __future__ import annotations

import sys
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import click

from palaver.cli import json_output
from palaver.cli.chat.feed_presenter import Hearing, Note
from palaver.cli.errors import AnswerFailed, AnswerStopped, MessageRefused
from palaver.cli.output import clean, lasted, line, say_json
from palaver.domain.draft import Piece, PieceKind
from palaver.domain.errors import StoreClosed
from palaver.domain.feed_events import Happened, TurnChanged
from palaver.domain.inbound import Outcome
from palaver.domain.turn import BusyPolicy, TurnState

if TYPE_CHECKING:
    from palaver.cli.chat.chat_session import Talk
    from palaver.cli.chat.feed_presenter import Heard
    from palaver.domain.feed_events import FeedItem
    from palaver.domain.ids import SessionId, TurnId
    from palaver.domain.turn import Turn

COMMAND = "command"
REFUSED = "refused"


@dataclass(slots=True, kw_only=True)
class Answer:
    """What became of a message."""

    state: str  # of its turn; or that it was a command, or refused
    text: str = ""
    session_id: SessionId | None = None
    turn_id: TurnId | None = None
    error: str | None = None

    def check(self) -> None:
        """Raise what keeps it from being a whole answer."""
        match self.state:
            case TurnState.FAILED:
                raise AnswerFailed(f"no answer: {self.error}", session_id=self.session_id, turn_id=self.turn_id)
            case TurnState.INTERRUPTED:
                raise AnswerStopped(f"no whole answer: {self.error}", session_id=self.session_id, turn_id=self.turn_id)
            case "refused":
                raise MessageRefused(self.error or "", session_id=self.session_id)


class Out(Protocol):
    """Where an answer is shown as it comes."""

    def show(self, heard: Heard) -> None:
        """More of it."""
        ...

    def end(self) -> None:
        """That was all."""
        ...


class Once:
    """Asks one thing after the other."""

    def __init__(self, talk: Talk, out: Out) -> None:
        self._talk = talk
        self._out = out
        self.running: TurnId | None = None  # the turn that is being answered

    async def stop(self) -> None:
        """Stop the answer that is being given."""
        await self._talk.say("/stop")

    def close(self) -> None:
        """Leave what is shown in good order, also in the middle of an answer."""
        self._out.end()

    async def ask(self, text: str) -> Answer:
        """Say something and wait for its answer."""
        before = self._talk.now()
        receipt = await self._talk.say(text, busy=BusyPolicy.QUEUE)
        unknown = "unknown" in (receipt.facts or {})  # a slash that is no command
        if receipt.outcome is Outcome.REFUSED or unknown:
            return Answer(state=REFUSED, session_id=receipt.session_id, error=receipt.reply)
        turn = await self._talk.turn(receipt.turn_id) if receipt.turn_id is not None else None
        if turn is None or turn.created_at < before:  # a command may also name a turn that was there already
            return self._commanded(receipt.reply or "", receipt.session_id)
        if receipt.reply:
            self._out.show(Note(receipt.reply))
        if receipt.ahead:
            self._out.show(Note(f"waiting behind {receipt.ahead}"))
        return await self._answered(turn)

    def _commanded(self, reply: str, session_id: SessionId | None) -> Answer:
        self._out.show(Piece(PieceKind.TEXT, reply))
        self._out.end()
        return Answer(state=COMMAND, text=reply, session_id=session_id)

    async def _answered(self, turn: Turn) -> Answer:
        talk = self._talk
        hearing = Hearing(None, turn_id=turn.id)
        hearing.hear(TurnChanged(turn))
        said = _Said(self._out)
        feed = talk.gateway.feed
        follow = feed.follow(talk.owner.principal, turn.session_id, after=turn.input_seq - 1)
        checked = False
        async with aclosing(follow) as items:
            async for item in items:
                said.take(hearing, item)
                ended = _end_of(item, turn)
                if ended is None and not checked:  # from here on its end is told; it may have been before
                    checked = True
                    ended = await self._over(turn, hearing, said)
                self.running = turn.id if ended is None and hearing.running else None
                if ended is not None:
                    return said.answer(ended)
        raise StoreClosed  # the gateway has stopped under our feet

    async def _over(self, turn: Turn, hearing: Hearing, said: _Said) -> Turn | None:
        """The end of a turn that was quicker than we were."""
        now = await self._talk.turn(turn.id)
        if now is None or not now.state.ended:
            return None
        hearing.hear(TurnChanged(turn))
        for event in await self._talk.view.events(turn.session_id, after=turn.input_seq):
            said.take(hearing, Happened(event))
        return now


def _end_of(item: FeedItem, turn: Turn) -> Turn | None:
    return item.turn if isinstance(item, TurnChanged) and item.turn.id == turn.id and item.turn.state.ended else None


class _Said:
    """The words of an answer, and where they are shown."""

    def __init__(self, out: Out) -> None:
        self._out = out
        self._parts: list[str] = [""]

    def take(self, hearing: Hearing, item: FeedItem) -> None:
        for heard in hearing.hear(item):
            self._out.show(heard)
            if isinstance(heard, Piece) and heard.kind is PieceKind.TEXT:
                self._parts[-1] += heard.text
            elif self._parts[-1]:
                self._parts.append("")

    def answer(self, turn: Turn) -> Answer:
        self._out.end()
        return Answer(
            state=turn.state.value,
            text="\n\n".join(part.strip("\n") for part in self._parts if part.strip()),
            session_id=turn.session_id,
            turn_id=turn.id,
            error=turn.error,
        )


# ---- where it is shown -------------------------------------------------------------------------------------


class Plain:
    """Words as they come on standard output; what is done meanwhile on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last = ""  # what was written last
        self._apart = False  # the next words begin a paragraph

    def show(self, heard: Heard) -> None:
        """More of an answer."""
        match heard:
            case Piece(PieceKind.TEXT, text):
                self._write(text)
            case Piece(PieceKind.CALL, name=name, arguments=arguments):
                self._tell(f"→ {line(name)} {line(arguments)}")
            case Piece(PieceKind.RESULT, text, failed=failed, name=name, duration_ms=took):
                used = f"{line(name)} {lasted(took)}".rstrip()
                self._tell(f"{'✗' if failed else '✓'} {used}: {line(text)[:200]}")
            case Note(text):
                self._tell(clean(text))

    def end(self) -> None:
        """That was all."""
        if self._last and not self._last.endswith("\n"):
            click.echo()
        self._last, self._apart = "", False

    def _write(self, text: str) -> None:
        shown = clean(text)
        if self._apart:
            shown = ("\n\n" if not self._last.endswith("\n") else "\n") + shown.lstrip("\n")
            self._apart = False
        if shown:
            self._last = shown
            click.echo(shown, nl=False)
            sys.stdout.flush()

    def _tell(self, text: str) -> None:
        self._apart = bool(self._last)
        if not self._quiet:
            click.echo(text, err=True)


class Nowhere:
    """For programs, which get it all at the end."""

    def show(self, heard: Heard) -> None:
        """Nothing is shown."""

    def end(self) -> None:
        """Nothing was shown."""


async def say_answer_json(answer: Answer, talk: Talk) -> None:
    """Print one JSON document."""
    session = await talk.view.get(answer.session_id) if answer.session_id is not None else None
    say_json(
        {
            "session_id": answer.session_id,
            "turn_id": answer.turn_id,
            "state": answer.state,
            "text": answer.text,
            "error": answer.error,
            "usage": None if session is None else json_output.session_json(session)["usage"],
        }
    )
