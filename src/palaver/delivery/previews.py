"""Shows answers in chats while they are being written: the sign that the agent is typing, and one growing message.

The process that runs an account does this for all turns whose answer goes there, whichever process runs the turn. The
growing message is stored before it is sent, and its id before it grows. It is never completed here: the delivery of
the turn takes it over. What no delivery takes over is deleted, or edited to say so.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.core.background import PollLoop
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import DeliveryError, SendRejected, SendRetryable, StoreError
from palaver.core.recent_entries import RecentEntries
from palaver.core.tasks import BackgroundTasks, cancel_tasks
from palaver.core.texts import chat_language, say, translate
from palaver.delivery import previews_table as previews
from palaver.delivery.adapter import Adapter, OutgoingMessage
from palaver.delivery.preview_stream import CALL_TIMEOUT_SECONDS, PreviewStream, can_show_activity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.core.source import Platform
    from palaver.delivery.model import Capabilities
    from palaver.delivery.pace import Pacers
    from palaver.delivery.previews_table import Preview, RunningTurn
    from palaver.live.feed import Feed
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.store import SessionStore

IDLE_SECONDS = 60.0  # between two polls when nothing changes; every change of work wakes the loop
LEFTOVER_RETRY_SECONDS = 10.0
MAX_LEFTOVER_AGE = timedelta(hours=1)  # then it is given up
REACTION_RETRY_SECONDS = (2.0, 10.0, 60.0)  # before each further attempt to take a reaction back
END_SECONDS = 2.0  # for taking reactions back when the process ends
MAX_ENDED_TURNS = 1000  # remembered, so that a late look at the turns does not start a preview again
STOPPED_TEXT = say("answer.stopped", "(Stopped)")
REPLACED_TEXT = say("answer.in_next", "(The answer is in the next message.)")

log = logging.getLogger(__name__)


class Previews:
    """The previews of the accounts that are live in this process."""

    def __init__(
        self,
        store: SessionStore,
        list_adapters: Callable[[], Mapping[AccountKey, Adapter]],
        feed: Feed,
        pacers: Pacers,
        owner: str,
        get_unstreamed_platforms: Callable[[], frozenset[Platform]],
    ) -> None:
        self._store = store
        self._engine = store.engine
        self._list_adapters = list_adapters
        self._feed = feed
        self._pacers = pacers
        self._owner = owner  # of the growing messages that this process sends and edits
        self._get_unstreamed_platforms = get_unstreamed_platforms  # there, answers are shown when they are complete
        self._streams: dict[int, PreviewStream] = {}  # by turn number
        # Numbers of turns whose answer is on its way.
        self._ended: RecentEntries[int, None] = RecentEntries(MAX_ENDED_TURNS)
        self._removals: dict[int, asyncio.Task[None]] = {}  # of leftovers, by the number of the preview
        self._reaction_removals = BackgroundTasks("palaver-reaction-removal")
        self._loop = PollLoop(self._poll, "palaver-previews", log=log, failure_event="preview_poll_failed")

    def start(self) -> None:
        """Start to show the answers of running turns."""
        self._loop.start()

    def wake(self) -> None:
        """Look now for turns that have started or ended."""
        self._loop.wake()

    async def stop(self) -> None:
        """Stop all growing messages where they are: the process that runs the account next goes on with them."""
        await self._loop.stop()
        await asyncio.gather(*(self._end_stream(turn_no) for turn_no in list(self._streams)))
        release = Write(
            lambda tx: previews.release_previews(tx, self._owner),
            read_first=lambda tx: None if previews.has_owner(tx, self._owner) else 0,
        )
        try:
            await self._engine.arun(release)
        except StoreError as error:  # the next process sends the answers as messages of their own
            log.warning("previews_not_released", extra={"error": str(error)})
        await self._reaction_removals.end(END_SECONDS)
        await cancel_tasks(self._removals.values())

    async def end_growth(self, turn_no: int) -> None:
        """Stop the growing message of a turn whose answer is about to be sent, and wait until nothing is on its way."""
        self._ended.remember(turn_no, None)
        await self._end_stream(turn_no)

    async def _end_stream(self, turn_no: int) -> None:
        stream = self._streams.pop(turn_no, None)
        if stream is not None:
            await stream.stop()

    async def _poll(self) -> float:
        """Start and stop growing messages, and delete those that are left over; return the seconds until the next."""
        adapters = {key: each for key, each in self._list_adapters().items() if _can_show(each.capabilities)}
        if not adapters and not self._streams:
            return IDLE_SECONDS

        def read(tx: Transaction) -> tuple[list[RunningTurn], list[Preview]]:
            running = previews.list_running_turns(tx)
            return running, [each for account in adapters for each in previews.list_leftovers(tx, account)]

        under_way = set(self._removals)  # one that ends meanwhile may still be among those that are read
        running, leftovers = await self._engine.arun(Read(read, is_quick=True))
        self._update_streams(adapters, running)
        for preview in leftovers:
            if preview.no not in under_way.union(self._removals):
                removal = self._remove_leftover(adapters[preview.address.account_key], preview)
                task = asyncio.create_task(removal, name=f"palaver-preview-removal-{preview.no}")
                self._removals[preview.no] = task
                task.add_done_callback(lambda _, no=preview.no: self._removals.pop(no))  # type: ignore[misc]
        return LEFTOVER_RETRY_SECONDS if under_way or self._removals else IDLE_SECONDS

    def _update_streams(self, adapters: Mapping[AccountKey, Adapter], running: list[RunningTurn]) -> None:
        turns = {turn.no: turn for turn in running if turn.no not in self._ended}
        for turn_no, stream in list(self._streams.items()):
            turn = turns.get(turn_no)
            if turn != stream.turn or adapters.get(stream.turn.address.account_key) is not stream.adapter:
                stream.request_stop()  # not awaited: a platform that hangs must not keep others from starting
            if stream.is_done:
                del self._streams[turn_no]
        for turn_no, turn in turns.items():
            adapter = adapters.get(turn.address.account_key)
            if adapter is not None and turn_no not in self._streams:
                pacer = self._pacers.get(turn.address.account_key, adapter.capabilities)
                shows_text = turn.address.platform not in self._get_unstreamed_platforms()
                stream = PreviewStream(
                    self._store,
                    self._feed,
                    adapter,
                    pacer,
                    turn,
                    self._owner,
                    lambda stream, adding: self._reaction_removals.start(self._remove_reaction(stream, adding)),
                    shows_text=shows_text,
                )
                self._streams[turn_no] = stream
                stream.start(on_end=self.wake)

    async def _remove_reaction(self, stream: PreviewStream, adding: asyncio.Task[Exception | None]) -> None:
        """Take back the reaction that has shown that a message is being answered."""
        await adding  # if it were taken back while it is on its way, it would stay
        turn = stream.turn
        for seconds in (0.0, *REACTION_RETRY_SECONDS):
            await asyncio.sleep(seconds)
            adapter = self._list_adapters().get(turn.address.account_key)
            if self._streams.get(turn.no, stream) is not stream or turn.reply_to is None:
                return  # the account was connected again: what shows the answer now takes it back
            try:
                async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                    if adapter is not None:
                        await adapter.react(turn.address, turn.reply_to, "")
                        return
            except SendRejected:
                return
            except Exception as error:  # noqa: BLE001  (an adapter may fail in any way, and it is only a courtesy)
                log.debug("reaction_not_removed", extra={"turn": turn.id, "error": str(error)})

    async def _remove_leftover(self, adapter: Adapter, preview: Preview) -> None:
        """Delete a preview that no delivery takes over. If that has to be tried again, it stays stored."""
        fields = {"platform": adapter.platform, "preview": preview.key}
        try:
            async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
                await self._delete_message(adapter, preview)
        except Exception as error:  # an adapter may fail in any way
            is_old = self._now() - preview.created_at > MAX_LEFTOVER_AGE // timedelta(microseconds=1)
            can_retry = isinstance(error, SendRetryable | TimeoutError) and not is_old
            log.warning("preview_not_deleted", extra={**fields, "error": str(error), "retry": can_retry})
            if not isinstance(error, DeliveryError | TimeoutError):
                log.debug("preview_not_deleted", exc_info=error)
            if can_retry:
                return
        crash_point("preview.removed")
        try:
            await self._engine.arun(Write(lambda tx: previews.delete_preview(tx, preview.no)))
        except StoreError as error:  # deleting it once more does no harm
            log.warning("preview_not_forgotten", extra={**fields, "error": str(error)})

    async def _delete_message(self, adapter: Adapter, preview: Preview) -> None:
        capabilities, address = adapter.capabilities, preview.address
        text = translate(REPLACED_TEXT if preview.has_delivery else STOPPED_TEXT, chat_language.name)
        body = (await asyncio.to_thread(adapter.render, text))[0]
        message = OutgoingMessage(key=preview.key, address=address, body=body)
        message_id = preview.message_id
        if message_id is None:
            if not capabilities.recognizes_key(preview.created_at, self._now()):
                log.warning("preview_lost", extra={"platform": adapter.platform, "preview": preview.key})
                return
            message_id = await adapter.send(message)  # returns the id of the message that has arrived with this key
        if message_id is None:
            return
        if capabilities.can_delete:
            await adapter.delete(address, message_id)
        else:
            await adapter.edit(message_id, message)

    def _now(self) -> int:
        return to_micros(self._store.clock.now())


def _can_show(capabilities: Capabilities) -> bool:
    """Return whether people can see on a platform that an answer is being written."""
    return bool(capabilities.can_edit or capabilities.has_native_stream or can_show_activity(capabilities))
