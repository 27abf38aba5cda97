"""One message and its answer, for scripts: `-m`, and every line of a pipe.

Only the answer goes to stdout; tool calls and notices go to stderr. The exit code says how the answer ended.
"""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from palaver.cli.chat import ChatMode, ChatOptions
from palaver.cli.chat.feed_presenter import AnswerOutput, DisplayItem, FeedPresenter, Note
from palaver.cli.errors import AnswerFailed, AnswerStopped, MessageRejected, get_exit_code, print_error
from palaver.cli.output import clean_line, clean_text, format_duration, has_escape_codes
from palaver.core.dataclass import dataclass
from palaver.core.errors import PalaverError, StoreClosed, StoreError
from palaver.live.feed_events import EventAppended, FeedItem, TurnChanged
from palaver.sessions.draft import Piece, PieceKind
from palaver.sessions.inbound import Outcome
from palaver.sessions.turn import BusyPolicy, Turn, TurnState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from palaver.cli.chat.chat_session import ChatSession
    from palaver.core.ids import SessionId, TurnId

COMMAND_STATE = "command"
REJECTED_STATE = "rejected"


@dataclass(slots=True, kw_only=True)
class Answer:
    """The answer to a message, or why there is none."""

    session_id: SessionId | None = None
    turn_id: TurnId | None = None
    state: str  # of the turn; or COMMAND_STATE or REJECTED_STATE
    text: str = ""
    error: str | None = None
    usage: Mapping[str, object] | None = None  # for --json

    def raise_for_state(self) -> None:
        """Raise an error unless this is a complete answer or the reply to a command."""
        match self.state:
            case TurnState.FAILED:
                raise AnswerFailed(self.error or "", session_id=self.session_id, turn_id=self.turn_id)
            case TurnState.INTERRUPTED:
                raise AnswerStopped(
                    f"The answer is incomplete: {self.error}", session_id=self.session_id, turn_id=self.turn_id
                )
            case "rejected":
                raise MessageRejected(self.error or "", session_id=self.session_id)


class OneShot:
    """Sends messages one by one and waits for each answer."""

    def __init__(self, chat: ChatSession, output: AnswerOutput) -> None:
        self._chat = chat
        self._output = output
        self.running_turn_id: TurnId | None = None  # the turn whose answer is being shown

    async def stop_answer(self) -> None:
        await self._chat.send("/stop")

    def close(self) -> None:
        """End the output properly, also in the middle of an answer."""
        self._output.end()

    async def ask(self, text: str) -> Answer:
        sent_at = self._chat.now()
        receipt = await self._chat.send(text, busy=BusyPolicy.QUEUE)
        is_unknown_command = "unknown_command" in (receipt.facts or {})
        if receipt.outcome is Outcome.REJECTED or is_unknown_command:
            return Answer(state=REJECTED_STATE, session_id=receipt.session_id, error=receipt.reply)
        turn = await self._chat.find_turn(receipt.turn_id) if receipt.turn_id is not None else None
        if turn is None or turn.created_at < sent_at:  # the receipt of a command may name an older turn
            reply = receipt.reply or ""
            self._output.show(Piece(PieceKind.TEXT, reply))
            self._output.end()
            return Answer(state=COMMAND_STATE, text=reply, session_id=receipt.session_id)
        if receipt.reply:
            self._output.show(Note(receipt.reply))
        if receipt.turns_ahead:
            self._output.show(Note(f"Queued ({receipt.turns_ahead} ahead)"))
        return await self._wait_for_answer(turn)

    async def _wait_for_answer(self, turn: Turn) -> Answer:
        chat = self._chat
        collector = _AnswerCollector(self._output, turn)
        feed = chat.gateway.feed.follow(chat.owner.principal, turn.session_id, after=turn.input_seq - 1)
        is_first_item = True
        async with aclosing(feed) as items:
            async for item in items:
                collector.collect(item)
                changed = item.turn if isinstance(item, TurnChanged) and item.turn.id == turn.id else None
                ended = changed if changed is not None and changed.state.has_ended else None
                if ended is None and is_first_item:  # the feed reports later ends; this turn may have ended before
                    ended = await self._find_missed_end(turn, collector)
                is_first_item = False
                self.running_turn_id = turn.id if ended is None and collector.presenter.is_running else None
                if ended is not None:
                    return collector.build_answer(ended)
        raise StoreClosed  # the gateway stopped while we were waiting

    async def _find_missed_end(self, turn: Turn, collector: _AnswerCollector) -> Turn | None:
        """Return the turn if it had already ended when we began to follow the feed, with its answer collected."""
        current = await self._chat.find_turn(turn.id)
        if current is None or not current.state.has_ended:
            return None
        collector.presenter.present(TurnChanged(turn))
        for event in await self._chat.view.transcripts.load_events(turn.session_id, after=turn.input_seq):
            collector.collect(EventAppended(event))
        return current


class _AnswerCollector:
    """Shows the items of an answer and collects its text."""

    def __init__(self, output: AnswerOutput, turn: Turn) -> None:
        self.presenter = FeedPresenter(None, turn_id=turn.id)
        self.presenter.present(TurnChanged(turn))
        self._output = output
        self._parts: list[str] = [""]

    def collect(self, feed_item: FeedItem) -> None:
        for item in self.presenter.present(feed_item):
            self._output.show(item)
            if isinstance(item, Piece) and item.kind is PieceKind.TEXT:
                self._parts[-1] += item.text
            elif self._parts[-1]:
                self._parts.append("")

    def build_answer(self, turn: Turn) -> Answer:
        self._output.end()
        return Answer(
            state=turn.state.value,
            text="\n\n".join(part.strip("\n") for part in self._parts if part.strip()),
            session_id=turn.session_id,
            turn_id=turn.id,
            error=turn.error,
        )


# ---- outputs -----------------------------------------------------------------------------------------------


class PlainOutput(AnswerOutput):
    """Writes the text of an answer to stdout, and tool calls and notices to stderr unless `quiet`."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last_text = ""
        self._starts_paragraph = False  # the next text starts a new paragraph

    def show(self, item: DisplayItem) -> None:
        match item:
            case Piece(PieceKind.TEXT, text):
                self._write_text(text)
            case Piece(PieceKind.CALL, name=name, arguments=arguments):
                self._write_notice(f"→ {clean_line(name)} {clean_line(arguments)}")
            case Piece(PieceKind.RESULT, text, failed=failed, name=name, duration_ms=duration_ms):
                tool = f"{clean_line(name)} {format_duration(duration_ms)}".rstrip()
                self._write_notice(f"{'✗' if failed else '✓'} {tool}: {clean_line(text)[:200]}")
            case Note(text):
                self._write_notice(clean_text(text))

    def end(self) -> None:
        if self._last_text and not self._last_text.endswith("\n"):
            click.echo()
        self._last_text, self._starts_paragraph = "", False

    def _write_text(self, text: str) -> None:
        text = clean_text(text)
        if self._starts_paragraph:
            text = ("\n\n" if not self._last_text.endswith("\n") else "\n") + text.lstrip("\n")
            self._starts_paragraph = False
        if text:
            self._last_text = text
            click.echo(text, nl=False)
            sys.stdout.flush()

    def _write_notice(self, text: str) -> None:
        self._starts_paragraph = bool(self._last_text)
        if not self._quiet:
            click.echo(text, err=True)


def choose_output(options: ChatOptions) -> AnswerOutput:
    if options.as_json:  # the whole answer is printed at the end
        return AnswerOutput()
    if options.mode is ChatMode.SCREEN or (options.mode is ChatMode.ONE_SHOT and has_escape_codes()):
        from palaver.cli.chat.renderer import LiveRenderer

        return LiveRenderer(quiet=options.quiet)
    return PlainOutput(quiet=options.quiet)


async def ask_lines(
    ask: Callable[[str], Awaitable[Answer]], lines: AsyncIterator[str], *, is_over: Callable[[], bool] = lambda: False
) -> int:
    """Ask each line, print what went wrong, and return the exit code of the last error; 0 if there was none."""
    code = 0
    async for text in lines:
        try:
            (await ask(text)).raise_for_state()
        except StoreError:
            raise
        except PalaverError as error:
            print_error(error)
            code = get_exit_code(error)
        if is_over():
            break
    return code
