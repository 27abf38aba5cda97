"""The growing message of one running turn, and the sign that the agent is at work."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING

from palaver.commands.reply_text import escape_markdown
from palaver.core.background import is_owner_dead
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Write
from palaver.core.errors import DeliveryError, PalaverError, SendRejected, SendRetryable, SendUncertain, StoreError
from palaver.core.ids import PersonId
from palaver.core.tasks import cancel_tasks, run_together, wait_for_event
from palaver.core.texts import chat_language, say, translate
from palaver.delivery import previews_table as previews
from palaver.delivery.adapter import Adapter, OutgoingMessage
from palaver.live.feed_events import DraftGrew
from palaver.people.model import Principal, Role
from palaver.sessions.delivery import Button, make_unexpected_error
from palaver.sessions.draft import Draft, Piece, PieceKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from palaver.delivery.model import Capabilities
    from palaver.delivery.pace import Pacer
    from palaver.delivery.previews_table import Preview, RunningTurn
    from palaver.live.feed import Feed
    from palaver.sessions.store import SessionStore


MAX_PREVIEW_CHARS = 3000  # of the answer so far; the end is shown
MAX_TOOL_NAME_CHARS = 40
SHARE_OF_MESSAGE = 0.7  # the text takes this much of a message at most: markup comes on top
PREVIEW_DELAY_SECONDS = 1.0  # an answer that is complete before this is sent at once
CALL_TIMEOUT_SECONDS = 10.0  # for one call of an adapter: the answer itself may be waiting for it to end
DRAFT_REFRESH_SECONDS = 20.0  # platforms hide a draft that is not renewed
TYPING_OVERLAP = 0.8  # the sign is renewed after this share of its time
ACTIVITY_EMOJI = "👀"  # on the message that is being answered, where there is no sign for typing
SYSTEM = Principal(PersonId(""), Role.OWNER)  # reads the draft of any conversation, to show it where its answer goes
log = logging.getLogger(__name__)


def build_preview_text(pieces: Sequence[Piece], max_chars: int) -> str:
    """Return what people see of an unfinished answer; empty if there is nothing to see yet."""
    texts: list[str] = []
    used_tool = ""
    is_new_message = True
    for piece in pieces:
        if piece.kind is PieceKind.TEXT:
            if is_new_message:
                texts.append("")
            texts[-1] += piece.text
            is_new_message, used_tool = False, ""
        elif piece.kind is PieceKind.CALL:
            is_new_message, used_tool = True, piece.name
    text = _cut_start("\n\n".join(text.strip() for text in texts if text.strip()), max_chars)
    step = ""
    if used_tool:
        using = say("answer.using", "*Using {tool}…*", tool=escape_markdown(used_tool, MAX_TOOL_NAME_CHARS))
        step = translate(using, chat_language.name)
    return "\n\n".join(each for each in (text, step) if each)


def _cut_start(text: str, max_chars: int) -> str:
    """Keep the end of a text that is too long, from the start of a line if there is one in the first half."""
    if len(text) <= max_chars:
        return text
    end = text[len(text) - max_chars :]
    line_start = end.find("\n", 0, max_chars // 2) + 1
    return f"…\n\n{end[line_start:].lstrip()}"


def render_preview(adapter: Adapter, pieces: Sequence[Piece]) -> str:
    """Return the one message in which the platform shows the end of an unfinished answer; empty if there is nothing."""
    max_length = adapter.capabilities.max_length
    max_chars = MAX_PREVIEW_CHARS if max_length is None else min(MAX_PREVIEW_CHARS, int(max_length * SHARE_OF_MESSAGE))
    text = build_preview_text(pieces, max_chars)
    bodies = adapter.render(text) if text else []
    return bodies[-1] if bodies else ""


def can_show_activity(capabilities: Capabilities) -> bool:
    """Return whether people can see on a platform that the agent is at work."""
    return bool(capabilities.typing_seconds or capabilities.can_react)


class PreviewStream:
    """Shows the answer of one turn in its chat while it is being written."""

    def __init__(
        self,
        store: SessionStore,
        feed: Feed,
        adapter: Adapter,
        pacer: Pacer,
        turn: RunningTurn,
        owner: str,
        take_reaction_back: Callable[[PreviewStream, asyncio.Task[Exception | None]], None],
        *,
        shows_text: bool = True,
    ) -> None:
        self.turn = turn
        self.adapter = adapter
        self._store = store
        self._engine = store.engine
        self._feed = feed
        self._pacer = pacer
        self._owner = owner  # of the growing message, while this process edits it
        self._take_reaction_back = take_reaction_back  # later: the answer does not wait for it
        self._shows_text = shows_text  # otherwise only that the agent is typing
        self._draft = Draft()
        self._draft_changed = asyncio.Event()
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._preview: Preview | None = None
        self._shown_body = ""
        self._uses_native_stream = adapter.capabilities.has_native_stream
        self._fields = {"turn": turn.id, "platform": str(turn.address.platform)}

    def start(self, on_end: Callable[[], None]) -> None:
        """Start to show the answer; `on_end` is called when nothing more is shown."""
        self._task = asyncio.create_task(self._run(), name=f"palaver-preview-{self.turn.id}")
        self._task.add_done_callback(lambda _: on_end())

    @property
    def is_done(self) -> bool:
        return self._task is not None and self._task.done()

    def request_stop(self) -> None:
        """Show nothing more. What is on its way to the platform is finished."""
        self._stopped.set()

    async def stop(self) -> None:
        """Show nothing more, and wait until nothing is on its way to the platform."""
        self.request_stop()
        if self._task is not None:
            done, _ = await asyncio.wait({self._task}, timeout=3 * CALL_TIMEOUT_SECONDS)
            if not done:
                self._task.cancel()

    async def _run(self) -> None:
        capabilities = self.adapter.capabilities
        tasks = [asyncio.create_task(self._show_activity())] if can_show_activity(capabilities) else []
        try:
            if self._shows_text and (capabilities.can_edit or capabilities.has_native_stream):
                tasks.append(asyncio.create_task(self._follow_draft()))
                await self._grow()
        except StoreError as error:  # the delivery goes on with what is stored
            log.warning("preview_not_stored", extra={**self._fields, "error": str(error)})
        except Exception:  # a preview is never worth more than its answer
            log.exception("preview_failed", extra=self._fields)
        finally:
            try:
                await self._stopped.wait()
            finally:
                await cancel_tasks(tasks)

    # -- typing --------------------------------------------------------------------------------------------

    async def _show_activity(self) -> None:
        """Show until the turn has ended that the agent is at work: by typing, else by a reaction to the message."""
        is_shown = self.adapter.capabilities.typing_seconds is not None and await self._keep_typing()
        if not is_shown and self.adapter.capabilities.can_react and self.turn.reply_to is not None:
            await self._keep_reaction(self.turn.reply_to)

    async def _keep_typing(self) -> bool:
        """Show that the agent is typing; return False if this chat has no such sign."""
        pause = max(0.5, (self.adapter.capabilities.typing_seconds or 0) * TYPING_OVERLAP)
        is_refused = False
        try:
            while not self._stopped.is_set():
                call = self.adapter.show_typing_for(self.turn.address, self.turn.reply_to)
                is_refused = isinstance(await self._call_quietly(call), SendRejected)
                if is_refused:
                    return False
                await wait_for_event(self._stopped, pause)
        finally:
            if not is_refused:
                await self._call_quietly(self.adapter.stop_typing(self.turn.address))
        return True

    async def _keep_reaction(self, message_id: str) -> None:
        """React to the message that is being answered, and take the reaction back at the end.

        If the process dies, the reaction stays until another process goes on with the turn.
        """
        adding = asyncio.create_task(
            self._call_quietly(self.adapter.react(self.turn.address, message_id, ACTIVITY_EMOJI))
        )
        try:
            await self._stopped.wait()
        finally:
            self._take_reaction_back(self, adding)

    async def _call_quietly(self, call: Awaitable[None]) -> Exception | None:
        """Make a call whose failure does no harm; return its error."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                await call
        except Exception as error:  # noqa: BLE001  (an adapter may fail in any way, and the sign is only a courtesy)
            log.debug("typing_failed", extra={**self._fields, "error": str(error)})
            return error
        return None

    # -- the draft -----------------------------------------------------------------------------------------

    async def _follow_draft(self) -> None:
        """Keep a copy of the draft, from the memory of this process or from the database."""
        with contextlib.suppress(PalaverError):  # the conversation was deleted
            async with aclosing(self._feed.follow(SYSTEM, self.turn.session_id, everything=True)) as items:
                async for item in items:
                    if isinstance(item, DraftGrew) and item.turn_id == self.turn.id:
                        if item.replaces_draft:
                            self._draft = Draft()
                        self._draft.extend(item.pieces)
                        self._draft_changed.set()

    # -- the growing message -------------------------------------------------------------------------------

    async def _grow(self) -> None:
        """Show the newest text at the platform's pace, until the turn has ended or the platform refuses."""
        if await wait_for_event(self._stopped, PREVIEW_DELAY_SECONDS):
            return
        chat_id = self.turn.address.chat_id
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAFT_REFRESH_SECONDS if self._uses_native_stream else None):
                    await run_together(self._draft_changed.wait(), self._stopped.wait())
            while wait := self._pacer.compute_edit_wait(chat_id, is_draft=self._uses_native_stream):
                if await wait_for_event(self._stopped, wait):
                    return
            if self._stopped.is_set():
                return
            self._draft_changed.clear()  # from here on a change is shown by the next round
            body = await asyncio.to_thread(render_preview, self.adapter, list(self._draft.pieces))
            if not body or (body == self._shown_body and not self._uses_native_stream):
                continue
            self._pacer.take_edit(chat_id, is_draft=self._uses_native_stream)
            if not await self._show(body):
                return

    async def _show(self, body: str) -> bool:
        """Show a text; return False if nothing more can be shown for this turn."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                if self._uses_native_stream:
                    key = previews.format_preview_key(self.turn.id)
                    self._uses_native_stream = await self.adapter.show_draft(self.turn.address, key, body)
                if not self._uses_native_stream:  # a message grows instead
                    self._pacer.take_edit(self.turn.address.chat_id)
            if not self._uses_native_stream and not await self._show_message(body):
                return False
        except SendRetryable as error:
            seconds = error.retry_after or self.adapter.capabilities.edit_pace.seconds
            if error.whole_account:
                self._pacer.pause(seconds)
            self._draft_changed.set()  # what was not shown is shown then
            return not await wait_for_event(self._stopped, seconds)
        except (DeliveryError, TimeoutError) as error:
            log.info("preview_refused", extra={**self._fields, "error": str(error)})
            return False
        self._shown_body = body
        return True

    async def _show_message(self, body: str) -> bool:
        if not self.adapter.capabilities.can_edit:
            return False
        if self._preview is None:
            found = await self._engine.arun(Read(lambda tx: previews.find_preview(tx, self.turn.no)))
            if found is not None and found.message_id is not None:  # of another process
                claim = Write(lambda tx: previews.claim_preview(tx, self.turn.no, self._owner, is_owner_dead))
                if await self._engine.arun(claim) is None:  # that process may still be editing it
                    log.info("preview_not_claimed", extra={**self._fields, "owner": found.owner})
                    return False
            self._preview = found
        if self._preview is None or self._preview.message_id is None:
            return await self._send_first(body)
        async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
            await self.adapter.edit(self._preview.message_id, self._build_message(body))
        crash_point("preview.grown")
        return True

    async def _send_first(self, body: str) -> bool:
        """Send the growing message; return False if that is not possible, or the turn has ended."""
        now = to_micros(self._store.clock.now())
        if self._preview is not None and not self.adapter.capabilities.recognizes_key(self._preview.created_at, now):
            return False  # a process died while it was being sent: it may be there
        crash_point("preview.before_save")
        preview = await self._engine.arun(
            Write(lambda tx: previews.add_preview(tx, self.turn, self._owner, now, is_owner_dead))
        )
        crash_point("preview.saved")
        if preview is None:
            return False
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                message_id = await self.adapter.send(self._build_message(body))
        except DeliveryError as error:
            if not isinstance(error, SendUncertain) and self._preview is None:
                await self._engine.arun(Write(lambda tx: previews.delete_unsent(tx, preview.no, self._owner)))
            raise
        except Exception as error:  # platform libraries raise errors of their own; it may have arrived
            log.exception("adapter_failed", extra=self._fields)
            raise make_unexpected_error(error) from error
        crash_point("preview.sent")
        if message_id is None:
            return False
        self._preview = await self._engine.arun(Write(lambda tx: previews.save_sent(tx, self.turn, message_id, now)))
        crash_point("preview.id_saved")
        return self._preview is not None and self._preview.owner == self._owner  # else another process goes on with it

    def _build_message(self, body: str) -> OutgoingMessage:
        label = translate(say("button.stop", "Stop"), chat_language.name)
        buttons = (Button(label, f"stop:{self.turn.id}"),) if self.adapter.capabilities.max_buttons else ()
        return OutgoingMessage(
            key=previews.format_preview_key(self.turn.id),
            address=self.turn.address,
            body=body,
            reply_to=self.turn.reply_to,
            buttons=buttons,
            is_preview=True,
        )
