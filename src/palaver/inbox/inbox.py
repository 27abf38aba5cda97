"""`Inbox`: accepts messages, commands and updates. See the package."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from palaver.accounts import access, pairing, sender_merge
from palaver.commands.command import CommandCall, MessageCall
from palaver.commands.runner import CommandRejected, CommandRunner, find_session
from palaver.core.clock import MIN_COPY_PAUSE_SECONDS, to_micros
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Transaction, Write, write_key
from palaver.core.errors import InvalidInput, InvalidMessage, NotAllowed, PalaverError, StoreError
from palaver.core.fair_slots import FairSlots
from palaver.core.source import ChatType
from palaver.core.text import is_storable
from palaver.core.texts import say, use_language
from palaver.delivery import accounts_table as platform_cursors
from palaver.inbox import message_queue as group_chats
from palaver.inbox.answer_brake import find_pause
from palaver.inbox.files import ExportFiles, FileReceiver, use_fallback_reply
from palaver.inbox.known_quotes import cut_known_quotes
from palaver.inbox.message_queue import MessageQueue
from palaver.inbox.receipts import (
    BotLimit,
    build_reader,
    check_content,
    find_duplicate,
    get_text,
    get_written_text,
    record_receipt,
    record_receipt_once,
    write_receipt,
)
from palaver.inbox.registry import REGISTRY
from palaver.inbox.updates import Checkpoint, UpdateHandler
from palaver.people import table as people
from palaver.sessions import lanes_table as lanes, turns_table as turns
from palaver.sessions.inbound import AnyUpdate, ButtonPressed, Cursor, Inbound, Outcome, Receipt
from palaver.sessions.indexer import MAX_CATCH_UP_SECONDS, catch_up_index
from palaver.sessions.message import MAX_MESSAGE_CHARS, describe_too_long
from palaver.sessions.search_table import PendingScope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection
    from datetime import datetime

    from palaver.agent.profiles import CurrentSettings
    from palaver.core.source import Platform, SessionSource
    from palaver.delivery.accounts_table import Fence
    from palaver.inbox.speech import Speech
    from palaver.media.attachments import Attachments
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.inbound import SettingsRequest
    from palaver.sessions.store import SessionStore
    from palaver.sessions.table import SessionRow
    from palaver.sessions.turn_leases import TurnLease
    from palaver.turns.worker import ClaimTurn, TurnWorker

    Call = CommandCall | MessageCall | None
    ChangeSettings = Callable[[SettingsRequest], Awaitable[None]]

T = TypeVar("T")
U = TypeVar("U", Inbound, ButtonPressed)

_CANNOT_WRITE_HERE = say(
    "chat.cannot_write",
    "I can't write in this chat, so I haven't started. Add me to it, or write me a direct message.",
)
MAX_CONCURRENT_CHANGES = 64  # of conversations, by different people; each may wait for a lock

log = logging.getLogger(__name__)


class Inbox:
    def __init__(
        self,
        store: SessionStore,
        settings: CurrentSettings,
        *,
        list_connected_platforms: Callable[[], Collection[Platform]] = tuple,
        get_max_file_bytes: Callable[[AccountKey], int] = lambda _account: 0,
        files: Attachments | None = None,
        speech: Speech | None = None,
        turn_worker: TurnWorker | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._commands = CommandRunner(REGISTRY, store, settings, list_connected_platforms, get_max_file_bytes)
        self._queue = MessageQueue(store, settings, list_connected_platforms)
        self._updates = UpdateHandler(store, settings, self._commands)
        self._files = FileReceiver(store, settings, files, speech)
        self._export_files = ExportFiles(store, files)
        self._bot_limit = BotLimit(settings)
        self._large_changes = FairSlots(MAX_CONCURRENT_CHANGES, per_key=1, min_pause=MIN_COPY_PAUSE_SECONDS)
        self._turn_worker = turn_worker  # runs new turns at once, while it has free places
        self.change_settings: ChangeSettings = _refuse_settings  # given by the composition root
        self._on_change = on_change  # called when there may be something to run, to stop or to send

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None, fence: Fence | None = None) -> Receipt:
        """Store a message and queue the turn that answers it, run the slash command that it contains, or store what
        else a platform reports.

        `cursor` is stored in the same transaction. Raises LeaseLost, having stored nothing, if another process has
        taken over the account of the fence. What can never be accepted raises InvalidInput; from a connection with a
        fence or a cursor it is recorded in the log of the server and passed over, because the platform would send it
        again for ever.
        """
        checkpoint = Checkpoint(_get_account(update.source), fence, cursor)
        _name_write(update)
        try:
            if isinstance(update, Inbound):
                receipt = await self._accept_message(update, checkpoint)
            elif isinstance(update, ButtonPressed):
                receipt = await self._accept_press(update, checkpoint)
            else:
                now = self._store.clock.now()
                receipt = await self._write(lambda tx: self._updates.handle(tx, update, now), checkpoint)
        except InvalidInput as error:
            if checkpoint.is_empty:
                raise
            log.warning("update_rejected", extra={"platform": str(update.source.platform), "error": error.code})
            rejection = Receipt(outcome=Outcome.REJECTED, facts={**error.facts, "error": error.code})
            receipt = await self._write(lambda _tx: rejection, checkpoint)
        self._announce(receipt)
        return receipt

    async def run_command(self, inbound: Inbound, call: CommandCall | MessageCall) -> Receipt:
        """Run a slash command that a program calls with typed arguments; the content of `inbound` is not used."""
        _name_write(inbound)
        receipt = await self._accept_call(inbound, call, Checkpoint(_get_account(inbound.source)))
        self._announce(receipt)
        return receipt

    async def save_cursor(self, account: AccountKey, cursor: Cursor, fence: Fence | None = None) -> None:
        """Store how far an account has read, when it has read nothing to accept. Raises LeaseLost like `accept`."""
        nothing = Receipt(outcome=Outcome.IGNORED)
        await self._write(lambda _tx: nothing, Checkpoint(account, fence, cursor))

    async def load_cursor(self, account: AccountKey, name: str = "") -> str | None:
        return await self._store.engine.arun(
            Read(lambda tx: platform_cursors.load_cursor(tx, account, name), is_quick=True)
        )

    # -- messages ------------------------------------------------------------------------------------------

    async def _accept_message(self, inbound: Inbound, checkpoint: Checkpoint) -> Receipt:
        is_for_agent = group_chats.is_addressed(inbound, self._settings.rules)
        depends_on_thread = group_chats.depends_on_thread(inbound, self._settings.rules)
        if inbound.is_from_bot and not self._bot_limit.allows_answer(inbound.source):
            is_for_agent = False
        elif depends_on_thread:
            is_for_agent = await self._store.engine.arun(Read(lambda tx: self._is_follow_up(tx, inbound)))
        if inbound.cut_quotes is not None:
            inbound = await cut_known_quotes(self._store, inbound, has_context=is_for_agent)
        if not is_for_agent:
            return await self._write(lambda tx: self._record(tx, inbound), checkpoint)
        if not inbound.files:
            check_content(inbound.content, inbound.attachment_ids)
        call = REGISTRY.parse(get_written_text(inbound))
        can_pause = inbound.may_be_from_bot and not inbound.was_sent_before_connection
        if can_pause and not access.is_unlimited(call):
            pause = await self._store.engine.arun(Read(lambda tx: self._find_pause(tx, inbound)))
            if pause is not None:
                return await self._write(lambda tx: self._record_pause(tx, inbound, pause), checkpoint)
        return await self._accept_call(inbound, call, checkpoint)

    async def _accept_call(self, inbound: Inbound, call: Call, checkpoint: Checkpoint) -> Receipt:
        if inbound.message_id is not None and not is_storable(inbound.message_id):
            raise InvalidMessage(f"message_id: {inbound.message_id!r} contains characters that can't be stored")
        if isinstance(call, MessageCall):
            inbound = replace(inbound, content=call.text, busy_policy=inbound.busy_policy or call.busy)
        if inbound.files and not isinstance(call, CommandCall):
            inbound = (await self._files.receive(inbound)).add_to(inbound)
        if isinstance(call, CommandCall) and call.action.uses_prices:
            await self._commands.load_prices()
        if isinstance(call, CommandCall) and call.action.reads:
            receipt = await self._try_accept_with_read(inbound, call, checkpoint)
            if receipt is not None:
                return receipt
        # Not in a chat: the messages of others would wait behind it on the same connection.
        if checkpoint.is_empty and isinstance(call, CommandCall) and call.action.changes_many_events:
            source = inbound.source
            async with self._large_changes.hold(f"{source.platform}:{source.user_id or source.chat_id}"):
                return await self._accept_with_write(inbound, call, checkpoint)
        return await self._accept_with_write(inbound, call, checkpoint)

    async def _accept_with_write(self, inbound: Inbound, call: Call, checkpoint: Checkpoint) -> Receipt:
        def write(claim: ClaimTurn | None) -> Awaitable[tuple[Receipt, TurnLease | None]]:
            return self._write(lambda tx: self._handle_write(tx, inbound, call, claim), checkpoint)

        try:
            if self._turn_worker is None or isinstance(call, CommandCall):
                receipt, _ = await write(None)
                return receipt
            return await self._turn_worker.run_new_turn(write)
        except CommandRejected as rejected:  # nothing of the command has happened
            error = rejected.error
            return await self._write(lambda tx: self._record_rejection(tx, inbound, error), checkpoint)

    async def _try_accept_with_read(
        self, inbound: Inbound, call: CommandCall, checkpoint: Checkpoint
    ) -> Receipt | None:
        """Run a command that only reads; None if the write path has to deal with it.

        If the process dies after the read, nothing is recorded; the command runs again when its message comes again.
        """
        if call.action.searches:
            scope = await self._store.engine.arun(Read(lambda tx: self._find_search_scope(tx, inbound)))
            await catch_up_index(self._store.engine, scope, MAX_CATCH_UP_SECONDS)
        receipt = await self._store.engine.arun(Read(lambda tx: self._handle_read(tx, inbound, call)))
        crash_point("inbox.command_read")
        if receipt is None:
            return None
        if receipt.export is not None:
            receipt = await self._export_files.add_to(receipt, receipt.export)
        if receipt.settings is not None:
            receipt = await self._change_settings(inbound, receipt, receipt.settings)
        is_recorded = inbound.message_id is not None or inbound.answer_address is not None
        if receipt.outcome is Outcome.DUPLICATE or not is_recorded:
            return receipt if checkpoint.is_empty else await self._write(lambda _tx: receipt, checkpoint)
        return await self._write(lambda tx: self._record_read(tx, inbound, receipt), checkpoint)

    async def _change_settings(self, inbound: Inbound, receipt: Receipt, request: SettingsRequest) -> Receipt:
        """Make the change that a command has asked for, or return why it can't be made."""
        try:
            await self.change_settings(request)
        except StoreError:
            raise
        except PalaverError as error:
            facts = {**error.facts, "error": error.code}
            refused = replace(receipt, outcome=Outcome.REJECTED, reply=error.text, facts=facts)
            receipt = await self._store.engine.arun(
                Read(lambda tx: self._write_receipt(refused, inbound, self._find_known_sender(tx, inbound)[1]))
            )
        return replace(receipt, settings=None)

    async def _accept_press(self, press: ButtonPressed, checkpoint: Checkpoint) -> Receipt:
        """Run the command of a button. The reply is for the adapter: it is not sent to the chat."""
        now = self._store.clock.now()
        try:
            return await self._write(lambda tx: self._updates.press(tx, self._merge_sender(tx, press), now), checkpoint)
        except CommandRejected as rejected:
            error = rejected.error
            return await self._write(
                lambda tx: self._updates.reject_press(tx, self._merge_sender(tx, press), error, now),
                checkpoint,
            )

    async def _write(self, run: Callable[[Transaction], T], checkpoint: Checkpoint) -> T:
        """Run a write in one transaction with the checkpoint."""
        crash_point("inbox.before_accept")
        if checkpoint.is_empty:
            return await self._store.engine.arun(Write(run))
        now = to_micros(self._store.clock.now())

        def run_and_save(tx: Transaction) -> T:
            checkpoint.save(tx, now)
            return run(tx)

        return await self._store.engine.arun(Write(run_and_save))

    def _announce(self, receipt: Receipt) -> None:
        crash_point("inbox.accepted")
        self._store.indexer.notify()
        is_running = self._turn_worker is not None and self._turn_worker.is_running(receipt.turn_id)
        if not is_running or receipt.reply is not None:
            self._on_change()

    # -- inside a transaction ------------------------------------------------------------------------------

    def _merge_sender(self, tx: Transaction, update: U) -> U:
        """Return an update whose sender has their main id."""
        source = sender_merge.merge_source(tx, update.source, self._store.config, self._store.clock.now())
        return update if source is update.source else replace(update, source=source)

    def _is_follow_up(self, tx: Transaction, inbound: Inbound) -> bool:
        source = sender_merge.find_merged_source(tx, inbound.source) or inbound.source
        return group_chats.is_follow_up(tx, inbound, self._store.build_arrival(source), self._settings.rules)

    def _record(self, tx: Transaction, inbound: Inbound) -> Receipt:
        inbound = self._merge_sender(tx, inbound)
        return group_chats.record_message(tx, inbound, self._store.build_arrival(inbound.source), self._settings.rules)

    def _handle_write(
        self, tx: Transaction, inbound: Inbound, call: Call, claim: ClaimTurn | None
    ) -> tuple[Receipt, TurnLease | None]:
        now = self._store.clock.now()
        inbound = self._merge_sender(tx, inbound)
        rules = self._settings.rules
        speaker = access.identify_speaker(tx, inbound.source, rules, to_micros(now), language=inbound.reported_language)
        person = speaker.person
        row = find_session(tx, inbound, person)  # before the receipt, which is not for people without access
        duplicate = find_duplicate(tx, inbound)
        if duplicate is not None:
            return duplicate, None
        may_run = False
        text = get_text(inbound)
        is_counted = speaker.can_speak and not inbound.is_backlog
        refusal = access.count_message(tx, person, call, rules, now) if is_counted else None
        if not speaker.can_speak:
            is_ignored = inbound.source.platform in rules.ignoring_platforms
            receipt = pairing.receive_stranger(tx, inbound, call, self._store.config, now, is_ignored=is_ignored)
            if receipt.outcome is Outcome.IGNORED:
                return receipt, None
        elif refusal is not None:
            receipt = refusal
        elif len(text) > MAX_MESSAGE_CHARS:
            facts = {"error": "too_long", "limit": MAX_MESSAGE_CHARS}
            receipt = Receipt(outcome=Outcome.REJECTED, reply=describe_too_long(len(text)), facts=facts)
        elif not inbound.can_be_answered and not (isinstance(call, CommandCall) and not call.action.runs_agent):
            receipt = Receipt(outcome=Outcome.REJECTED, reply=_CANNOT_WRITE_HERE, facts={"error": "cannot_write_here"})
        elif isinstance(call, CommandCall) and person is not None:
            receipt = use_fallback_reply(self._run_command(tx, inbound, call, speaker, row, now))
        else:
            if isinstance(call, MessageCall) and person is not None:
                self._commands.check_message_call(call, inbound, person)
            receipt, may_run = self._queue.store_message(tx, inbound, person, row, now)
        recorded = record_receipt(tx, inbound, self._write_receipt(receipt, inbound, speaker, call), to_micros(now))
        if not may_run or claim is None or recorded.turn_id is None:
            return recorded, None
        return recorded, claim(tx, recorded.turn_id, to_micros(now))

    def _handle_read(self, tx: Transaction, inbound: Inbound, call: CommandCall) -> Receipt | None:
        """Run a command that only reads; None for accounts that are new or may not speak, and for texts too long."""
        source, speaker = self._find_known_sender(tx, inbound)
        person = speaker.person if speaker else None
        if source is None or speaker is None or person is None or len(get_text(inbound)) > MAX_MESSAGE_CHARS:
            return None
        inbound = replace(inbound, source=source)
        row = find_session(tx, inbound, person)
        duplicate = find_duplicate(tx, inbound)
        if duplicate is not None:
            return duplicate
        now = self._store.clock.now()
        refusal = None if inbound.is_backlog else access.check_message_rate(tx, person, self._settings.rules, now)
        if refusal is not None:
            return self._write_receipt(refusal, inbound, speaker, call)
        try:
            receipt = self._run_command(tx, inbound, call, speaker, row, now)
            return self._write_receipt(receipt, inbound, speaker, call)
        except CommandRejected as rejected:
            return self._build_rejection(tx, inbound, rejected.error)

    def _find_search_scope(self, tx: Transaction, inbound: Inbound) -> PendingScope:
        """Return the sessions that the sender of a search may see."""
        _, speaker = self._find_known_sender(tx, inbound)
        person = speaker.person if speaker else None
        return PendingScope(() if person is None else people.list_audiences(tx, person.id))

    def _find_known_sender(
        self, tx: Transaction, inbound: Inbound
    ) -> tuple[SessionSource | None, access.Speaker | None]:
        """Return the source with the sender's main id, and the sender if they are known and may talk to the agent."""
        source = sender_merge.find_merged_source(tx, inbound.source)
        speaker = access.find_speaker(tx, source, self._settings.rules) if source else None
        return source, speaker if speaker is not None and speaker.can_speak else None

    def _build_rejection(self, tx: Transaction, inbound: Inbound, error: PalaverError) -> Receipt:
        """Build the receipt of a command that could not be carried out."""
        session_id = inbound.session_id
        if session_id is None:
            arrival = self._store.build_arrival(inbound.source, self._store.clock.now())
            row = lanes.find_current_session(tx, lanes.resolve_key(tx, arrival))
            session_id = row.session.id if row else None
        facts = {**error.facts, "error": error.code}
        rejection = Receipt(outcome=Outcome.REJECTED, reply=error.text, session_id=session_id, facts=facts)
        return self._write_receipt(rejection, inbound, access.find_speaker(tx, inbound.source, self._settings.rules))

    def _run_command(
        self,
        tx: Transaction,
        inbound: Inbound,
        call: CommandCall,
        speaker: access.Speaker,
        row: SessionRow | None,
        now: datetime,
    ) -> Receipt:
        """Run a command; the JSON of its reply is in the language of the person, too."""
        assert speaker.person is not None  # noqa: S101  (checked by the callers)
        with use_language(build_reader(inbound, speaker, self._settings.rules).language):
            return self._commands.run(tx, inbound, call, speaker.person, row, now)

    def _write_receipt(
        self, receipt: Receipt, inbound: Inbound, speaker: access.Speaker | None, call: Call = None
    ) -> Receipt:
        """Write the reply as the person reads it.

        In answer to an interaction, only its sender sees what was refused or only read. What has changed something is
        told in the chat, where others may depend on it, if our account can write there.
        """
        is_read = receipt.export is None and receipt.settings is None
        only_reads = is_read and isinstance(call, CommandCall) and call.action.reads
        is_in_group = inbound.source.chat_type is not ChatType.DM  # in a direct chat, the outbox loses nothing
        is_private = inbound.is_interaction and (
            not inbound.can_be_answered or (is_in_group and (receipt.outcome is Outcome.REJECTED or only_reads))
        )
        reader = build_reader(inbound, speaker, self._settings.rules, is_private=is_private)
        return write_receipt(replace(receipt, is_private=is_private), reader)

    def _record_rejection(self, tx: Transaction, inbound: Inbound, error: PalaverError) -> Receipt:
        inbound = self._merge_sender(tx, inbound)
        rejection = self._build_rejection(tx, inbound, error)
        return record_receipt_once(tx, inbound, rejection, to_micros(self._store.clock.now()))

    def _find_pause(self, tx: Transaction, inbound: Inbound) -> Receipt | None:
        """Return the receipt of a message that is not answered because programs seem to answer each other."""
        source, speaker = self._find_known_sender(tx, inbound)
        if source is None or speaker is None or speaker.person is None or find_duplicate(tx, inbound) is not None:
            return None
        now = self._store.clock.now()
        current = lanes.find_current_session(tx, lanes.resolve_key(tx, self._store.build_arrival(source, now)))
        if current is not None and turns.load_open(tx, current.no).is_busy:
            return None  # a program that answers answers comes after them
        return find_pause(tx, source, current, now)

    def _record_pause(self, tx: Transaction, inbound: Inbound, pause: Receipt) -> Receipt:
        inbound = self._merge_sender(tx, inbound)
        speaker = access.find_speaker(tx, inbound.source, self._settings.rules)
        written = self._write_receipt(pause, inbound, speaker)
        return record_receipt_once(tx, inbound, written, to_micros(self._store.clock.now()))

    def _record_read(self, tx: Transaction, inbound: Inbound, receipt: Receipt) -> Receipt:
        inbound = self._merge_sender(tx, inbound)
        now = self._store.clock.now()
        if not inbound.is_backlog:
            access.count_read(tx, inbound.source, self._settings.rules, now)
        return record_receipt_once(tx, inbound, receipt, to_micros(now))


async def _refuse_settings(_request: SettingsRequest) -> None:
    raise NotAllowed.say("sethere.elsewhere", "The server's settings can't be changed from here. Use the page.")


def _name_write(update: AnyUpdate) -> None:
    """Say which chat the writes of this task change: one that can't be written to right now must not hold up others."""
    source, session_id = update.source, update.session_id if isinstance(update, Inbound) else None
    names = (source.platform, source.account, source.chat_id, source.thread_id or "", session_id or "")
    write_key.set("\0".join(names))


def _get_account(source: SessionSource) -> AccountKey:
    return source.platform, source.account
