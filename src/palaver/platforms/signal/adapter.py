"""One Signal account: runs signal-cli, reads what it receives from a spool, and sends through it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import shlex
import shutil
import tempfile
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import AccountRefused, ConnectionLost, InvalidInput, SendRejected, SendRetryable, SendUncertain
from palaver.core.files import get_free_bytes
from palaver.core.source import Platform
from palaver.core.tasks import cancel_tasks
from palaver.delivery.adapter import AccountInfo, AccountLink, Adapter, OutgoingFile, OutgoingMessage
from palaver.gateway.intake import Intake
from palaver.platforms.common.failures import make_repeatable
from palaver.platforms.common.send_mark import mark_before_request
from palaver.platforms.signal.client import (
    LINK_AGAIN,
    REGISTER_AGAIN,
    RequestNotSent,
    RpcError,
    SignalProcess,
    find_program,
    is_unauthorized,
    kill_leftover,
    make_delivery_error,
    make_exit_error,
    read_pid,
    read_version,
)
from palaver.platforms.signal.inbound import MessageRef, build_target, parse_message_id
from palaver.platforms.signal.linking import LinkedAccount, describe_account, link_device, read_account
from palaver.platforms.signal.manifest import CAPABILITIES, SignalSettings
from palaver.platforms.signal.outbound import MessageBody, build_quote, render_markdown
from palaver.platforms.signal.receiver import AdapterState, Receiver, Spool, SpoolPosition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from palaver.platforms.manifest import AccountPlace
    from palaver.sessions.delivery import Address

log = logging.getLogger(__name__)

PINGS_PER_SERVER_CHECK: Final = 20  # so that a request to Signal's server is made every ten minutes
BUSY_SECONDS: Final = 10.0  # after the last line
UPLOAD_SECONDS: Final = 300.0
MAX_SPOOL_BYTES: Final = 16 * 1024 * 1024  # then signal-cli is started again with a new file
MIN_FREE_BYTES: Final = 64 * 1024 * 1024  # on the disk
MAX_EDITS: Final = 10  # of one message: apps ignore further ones
MAX_PREVIEW_EDITS: Final = 8  # so that the complete answer can still replace the preview
ATTACHMENT_LIFETIME: Final = timedelta(days=7)  # of files that signal-cli has downloaded and we have stored
FILE_CHUNK_BYTES: Final = 256 * 1024
MAX_FILE_NAME_BYTES: Final = 200  # file systems allow 255
REMOVED_REACTION: Final = "👍"  # apps take back whatever reaction there is


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalTiming:
    """The waits of the adapter, in seconds."""

    start: float = 120.0  # until signal-cli listens
    first_answer: float = 120.0  # to the first request
    ping: float = 30.0  # between two requests that signal-cli answers by itself
    answer: float = 30.0  # to each of them
    connect_poll: float = 0.05  # between two attempts to connect, while signal-cli starts
    busy_poll: float = 0.05  # between two looks into the spool, while something goes on
    idle_poll: float = 0.25
    leftover: float = 5.0  # for a signal-cli of an earlier process to stop receiving; then it is killed
    leftover_kill: float = 5.0  # until it is gone


class SignalAdapter(Adapter):
    platform = Platform.SIGNAL
    capabilities = CAPABILITIES
    marks_sending = True
    silence_seconds = 300.0

    def __init__(self, settings: SignalSettings, place: AccountPlace, *, timing: SignalTiming | None = None) -> None:
        self.account = place.account
        self._settings = settings
        self._timing = timing or SignalTiming()
        self._folder = place.folder
        self._pid_file = place.folder / "signal-cli.pid"
        self._config_folder = Path(settings.config_folder or place.folder / "signal-cli").expanduser()
        self._state: AdapterState | None = None
        self._own: LinkedAccount | None = None
        self._receiver: Receiver | None = None
        self._process: SignalProcess | None = None  # while it receives and sends
        self._last_process: SignalProcess | None = None  # it may still be ending
        self._devices: Sequence[Mapping[str, Any]] = ()
        self._is_refused = False  # Signal has refused a request of this device
        self._receiving = asyncio.Lock()  # two signal-cli of one account would wait for each other

    # ---- receiving -------------------------------------------------------------------------------------------

    async def probe(self) -> AccountInfo:
        """Find out whether signal-cli works and is linked; ask Signal itself if it is connected."""
        version = await read_version(await asyncio.to_thread(find_program, self._settings.program))
        account = await self._read_account()
        if self._process is not None and not await self._check_server(self._process, self._timing.answer):
            raise ConnectionLost.say("signal.server_unreachable", "Signal's server can't be reached right now.")
        state = await self._load_state()
        return describe_account(
            version, account, devices=self._devices, connected_at=state.connected_at, now=datetime.now(UTC)
        )

    async def run(self, link: AccountLink) -> None:
        """Link this device if it is not linked yet; then receive."""
        async with self._receiving:
            program = await asyncio.to_thread(find_program, self._settings.program)
            account = await self._find_account(program, link)
            self._own = account
            spool = Spool(self._folder / "spool", SpoolPosition.parse(await link.load_cursor()))
            await self._end_leftovers(spool)
            await asyncio.to_thread(spool.delete_empty)
            await asyncio.to_thread(self._prune_attachments, spool)
            await asyncio.to_thread(self._check_disk)
            state = await self._load_state()
            self._receiver = Receiver(
                account,
                spool,
                state,
                self._open_attachment,
                answers_everybody=(self._settings.chats or ("all" if account.is_primary else "self")) == "all",
            )
            async with Intake(link) as intake:
                while True:
                    async with self._run_process(program, account, spool) as process:
                        await self._receive(process, account, intake, link, spool)

    async def _read_account(self) -> LinkedAccount | None:
        account = await asyncio.to_thread(read_account, self._config_folder, self._settings.account)
        if account is not None and account.is_primary and not account.is_registered:
            raise AccountRefused(REGISTER_AGAIN)
        return account

    async def _find_account(self, program: str, link: AccountLink) -> LinkedAccount:
        account = await self._read_account()
        if account is not None and account.is_registered:
            return account
        await asyncio.to_thread(self._config_folder.mkdir, 0o700, parents=True, exist_ok=True)
        await link_device(program, str(self._config_folder), self._settings.device_name, link.report_linking)
        account = await self._read_account()
        if account is None:
            raise ConnectionLost.say(
                "signal.no_account_stored", "signal-cli has linked this device, but has stored no account."
            )
        return account

    async def _load_state(self) -> AdapterState:
        if self._state is None:
            self._state = await asyncio.to_thread(AdapterState, self._folder / "state.json")
        return self._state

    async def _end_leftovers(self, spool: Spool) -> None:
        """End the signal-cli of an earlier process that has died; it has stopped receiving by itself."""
        numbers = await asyncio.to_thread(spool.list_numbers)
        if await self._has_writers_after(self._timing.leftover, spool, numbers):
            pid = await asyncio.to_thread(read_pid, self._pid_file)
            if pid is not None and await asyncio.to_thread(spool.is_written_by, pid):
                kill_leftover(pid)
            if await self._has_writers_after(self._timing.leftover_kill, spool, numbers):
                raise ConnectionLost.say(
                    "signal.folder_in_use",
                    "Another process still writes into {folder}: a second Palaver, or a signal-cli that does not"
                    " end. Stop it.",
                    folder=self._folder / "spool",
                )

    async def _has_writers_after(self, seconds: float, spool: Spool, numbers: Sequence[int]) -> bool:
        """Wait until no process writes into files of the spool, at most so long; return whether one still does."""
        deadline = asyncio.get_running_loop().time() + seconds
        while any(map(spool.has_writer, numbers)):
            if asyncio.get_running_loop().time() > deadline:
                return True
            await asyncio.sleep(self._timing.busy_poll)
        return False

    @property
    def _command(self) -> str:
        """The beginning of a shell command that runs signal-cli for this account."""
        account = ["-a", self._settings.account] if self._settings.account else []
        return shlex.join([self._settings.program, "--config", str(self._config_folder), *account])

    @asynccontextmanager
    async def _run_process(self, program: str, account: LinkedAccount, spool: Spool) -> AsyncIterator[SignalProcess]:
        """Run signal-cli with a new file of the spool."""
        descriptor = spool.create_file()
        arguments = [program, "--config", str(self._config_folder), "--output", "json", "-a", account.name]
        process = await SignalProcess.start(arguments, descriptor, self._pid_file)
        self._process = self._last_process = process
        try:
            yield process
        finally:
            self._process = None
            await process.stop()

    async def _receive(
        self, process: SignalProcess, account: LinkedAccount, intake: Intake, link: AccountLink, spool: Spool
    ) -> None:
        """Read what signal-cli writes, until its file is so long that it needs a new one."""
        receiver = self._get_receiver()
        checking = asyncio.create_task(self._keep_checking(process, link), name="palaver-signal-check")
        clock = asyncio.get_running_loop().time
        busy_until = clock() + BUSY_SECONDS
        try:
            while True:
                has_ended = process.has_ended  # before reading: what it wrote before its end is then read
                for answer in process.take_late_answers():
                    await receiver.confirm(answer, link)
                if await receiver.read(intake):
                    busy_until = clock() + BUSY_SECONDS
                    continue
                if has_ended:
                    now = await self._read_account()  # if Signal refuses the account, it says so only in its files
                    if now is not None and not now.is_registered:
                        raise AccountRefused(LINK_AGAIN)
                    raise make_exit_error(await process.read_errors(), process.exit_code, is_primary=account.is_primary)
                if checking.done():
                    checking.result()
                if self._is_refused:
                    raise AccountRefused(REGISTER_AGAIN if account.is_primary else LINK_AGAIN)
                if spool.measure_size(spool.position.number) > MAX_SPOOL_BYTES:
                    await intake.wait_until_stored()
                    return
                is_busy = clock() < busy_until or intake.is_busy
                await process.wait(self._timing.busy_poll if is_busy else self._timing.idle_poll)
        finally:
            await cancel_tasks([checking])

    async def _keep_checking(self, process: SignalProcess, link: AccountLink) -> None:
        """Ask signal-cli regularly whether it lives, and Signal's server now and then whether it accepts us."""
        await process.connect(self._timing.start, self._timing.connect_poll)
        is_accepted = False
        seconds = self._timing.first_answer
        for number in itertools.count():
            await asyncio.to_thread(self._check_disk)
            try:
                if not is_accepted or number % PINGS_PER_SERVER_CHECK == 0:
                    is_accepted = await self._check_server(process, seconds)
                else:
                    await process.request("version", {}, seconds=self._timing.answer)
            except ConnectionLost:
                await process.wait_after_disconnect()
                if process.has_ended:
                    return  # the reader says why
                raise
            if is_accepted:
                link.report_connected()
                state, now = await self._load_state(), datetime.now(UTC)
                if state.connected_at is None or now - state.connected_at > timedelta(hours=1):
                    await asyncio.to_thread(state.record_connection, now)
            seconds = self._timing.answer
            await asyncio.sleep(self._timing.ping)

    def _check_disk(self) -> None:
        """Stop receiving before the disk is full: signal-cli would forget messages that it can't write."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if get_free_bytes(self._folder) < MIN_FREE_BYTES:
            raise ConnectionLost.say(
                "signal.disk_almost_full", "The disk is almost full, so Signal is paused. Free some space."
            )

    async def _check_server(self, process: SignalProcess, seconds: float) -> bool:
        """Return whether Signal's server answers. Raises AccountRefused if it refuses this device."""
        try:
            self._devices = await process.request("listDevices", {}, seconds=seconds) or ()
        except RpcError as error:
            if is_unauthorized(error.message):
                self._is_refused = True
                account = await self._read_account()
                is_primary = account is not None and account.is_primary
                raise AccountRefused(REGISTER_AGAIN if is_primary else LINK_AGAIN) from None
            log.warning("signal_server_unreachable", extra={"code": error.code})
            return False
        return True

    async def close(self) -> None:
        """End signal-cli, if `run` has not done so."""
        self._process = None
        if self._last_process is not None:
            await self._last_process.stop()

    # ---- files that people send ------------------------------------------------------------------------------

    async def _open_attachment(self, file_id: str) -> AsyncIterator[bytes]:
        """Read a file that signal-cli has downloaded."""
        if not file_id or Path(file_id).name != file_id:
            raise InvalidInput("signal-cli has not stored this file")
        path = self._config_folder / "attachments" / file_id
        try:
            file = await asyncio.to_thread(path.open, "rb")
        except OSError:
            raise InvalidInput("signal-cli has not stored this file") from None
        with file:
            while chunk := await asyncio.to_thread(file.read, FILE_CHUNK_BYTES):
                yield chunk

    def _prune_attachments(self, spool: Spool) -> None:
        """Delete old files that signal-cli has downloaded, in a folder of ours: signal-cli never deletes them.

        As long as a message is not stored, its files are needed.
        """
        shutil.rmtree(self._folder / "outgoing", ignore_errors=True)
        folder = self._config_folder / "attachments"
        if self._settings.config_folder is not None or not folder.is_dir() or spool.has_more():
            return
        oldest = (datetime.now(UTC) - ATTACHMENT_LIFETIME).timestamp()
        for path in folder.iterdir():
            if path.is_file() and path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    # ---- sending ---------------------------------------------------------------------------------------------

    def render(self, markdown: str) -> list[str]:
        return render_markdown(markdown)

    async def send(self, message: OutgoingMessage) -> str:
        parameters = self._build_target(message.address)
        if message.reply_to is not None:
            quoted = self._receiver.texts.get(message.reply_to, "") if self._receiver else ""
            parameters |= build_quote(parse_message_id(message.reply_to), quoted)
        if message.file is None:
            body = MessageBody.from_json(message.body)
            with mark_before_request(message.mark_sending):
                result = await self._deliver("send", parameters | body.build_parameters(), key=message.key)
            text = body.text
        else:
            async with self._store_file(message.file) as path:
                parameters["attachments"] = [str(path)]
                with mark_before_request(message.mark_sending):
                    result = await self._deliver("send", parameters, key=message.key, seconds=UPLOAD_SECONDS)
            text = message.file.name
        receiver = self._get_receiver()
        message_id = MessageRef(receiver.own_aci, int(result["timestamp"])).id
        receiver.sent_ids.remember(message_id, "")
        receiver.texts.remember(message_id, text)
        return message_id

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        """Replace the text of a message; apps accept only some edits of each."""
        state, ref = await self._load_state(), parse_message_id(message_id)
        revisions = state.list_revisions(ref)
        if message.is_preview and len(revisions) >= MAX_PREVIEW_EDITS:
            return
        if len(revisions) >= MAX_EDITS:
            raise SendRejected.say(
                "signal.too_many_edits", "Signal allows {limit} edits of a message.", limit=MAX_EDITS
            )
        parameters = self._build_target(message.address) | MessageBody.from_json(message.body).build_parameters()
        parameters["editTimestamp"] = max(revisions, default=state.find_original(ref)).timestamp
        result = await self._deliver("send", parameters, is_repeatable=True)
        await asyncio.to_thread(state.record_revision, ref, MessageRef(ref.author, int(result["timestamp"])))

    async def delete(self, address: Address, message_id: str) -> None:
        """Delete a message of ours for everybody."""
        parameters = self._build_target(address, notifies_self=False)
        parameters["targetTimestamp"] = parse_message_id(message_id).timestamp
        await self._deliver("remoteDelete", parameters, is_repeatable=True)

    async def show_typing(self, address: Address) -> None:
        """Show that the agent is typing; not in the notes to self, where no other person would see it."""
        await self._send_typing(address)

    async def stop_typing(self, address: Address) -> None:
        await self._send_typing(address, stop=True)

    async def _send_typing(self, address: Address, **options: bool) -> None:
        if self._own is None or address.chat_id != self._own.aci:
            parameters = self._build_target(address, notifies_self=False) | options
            await self._deliver("sendTyping", parameters, is_repeatable=True)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """React to a message; an empty emoji takes the reaction back."""
        ref = parse_message_id(message_id)
        parameters = self._build_target(address, notifies_self=False) | {
            "emoji": emoji or REMOVED_REACTION,
            "targetAuthor": ref.author,
            "targetTimestamp": ref.timestamp,
            "remove": not emoji,
        }
        await self._deliver("sendReaction", parameters, is_repeatable=True)

    def _build_target(self, address: Address, *, notifies_self: bool = True) -> dict[str, Any]:
        own = self._own
        if own is None or address.chat_id not in {own.aci, own.number}:
            return build_target(address)
        # Without a notification, the phone would show an answer among the notes as if it was read already.
        return {"recipient": [own.number or own.aci], "notifySelf": True} if notifies_self else {"noteToSelf": True}

    def _get_receiver(self) -> Receiver:
        assert self._receiver is not None  # noqa: S101  (set by `run`, before there is a process)
        return self._receiver

    async def _deliver(
        self,
        method: str,
        parameters: Mapping[str, Any],
        *,
        key: str = "",
        is_repeatable: bool = False,
        seconds: float = 60.0,
    ) -> Any:
        """Make a request about a chat; raises a DeliveryError."""
        process = self._process
        if process is None:
            raise SendRetryable.say("signal.not_connected", "Signal is not connected.")
        try:
            return await process.request(method, parameters, key=key, seconds=seconds)
        except RequestNotSent as error:
            raise SendRetryable(error.text) from error
        except ConnectionLost as error:
            raise (SendRetryable if is_repeatable else SendUncertain)(error.text) from error
        except RpcError as error:
            if is_unauthorized(error.message):  # what refuses us may be a single group
                with contextlib.suppress(AccountRefused, ConnectionLost):
                    await self._check_server(process, self._timing.answer)
            meaning = make_delivery_error(error, self._command)
            raise (make_repeatable(meaning) if is_repeatable else meaning) from error

    @asynccontextmanager
    async def _store_file(self, file: OutgoingFile) -> AsyncIterator[Path]:
        """Write a file to where signal-cli can read it, until it has sent it."""
        outgoing = self._folder / "outgoing"
        await asyncio.to_thread(outgoing.mkdir, 0o700, parents=True, exist_ok=True)
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=outgoing))
        name = "".join(each for each in file.name if each.isprintable() and each not in "/\\:")
        end = name.lstrip(".").encode()[-MAX_FILE_NAME_BYTES:].decode("utf-8", "ignore")
        path = folder / (end or "file")
        try:
            with await asyncio.to_thread(path.open, "wb") as target:
                async for chunk in file.read():
                    await asyncio.to_thread(target.write, chunk)
            yield path
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
