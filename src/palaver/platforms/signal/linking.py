"""Reads the account of signal-cli, describes it to its operator, and links it with a phone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import AccountRefused, ConnectionLost
from palaver.core.texts import say
from palaver.delivery.adapter import AccountInfo
from palaver.delivery.model import LinkingPrompt
from palaver.platforms.signal.client import find_setup_error, hide_people, start_program, stop_process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

log = logging.getLogger(__name__)

PRIMARY_DEVICE_ID = 1

# Signal's server changes, and then older versions no longer receive all messages.
OLDEST_RECEIVING_VERSION: Final = (0, 14, 5)
OLDEST_RECEIVING_DATE: Final = "June 2026"
LINK_LIFETIME: Final = timedelta(days=30)  # a linked device that is not connected for so long is removed
IDLE_WARNING: Final = timedelta(days=20)
CODE_SECONDS: Final = 60.0  # Signal closes the connection that a code belongs to after about so long
MAX_CODE_SECONDS: Final = 120.0  # if signal-cli does not notice; the phone may have scanned it at the last moment
MAX_CODES: Final = 15  # then the owner does not seem to wait for one, and each costs a start of signal-cli
CODE_START_SECONDS: Final = 60.0  # until signal-cli shows a code
FINISH_SECONDS: Final = 60.0  # for the rest, after the code was scanned
CODE_PREFIXES: Final = ("sgnl://linkdevice", "tsdevice:")
INSTRUCTIONS: Final = say(
    "signal.instructions",
    "Open Signal on your phone, choose Settings, then Linked devices, then Link new device, and"
    " scan this code. You need not transfer your message history.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedAccount:
    number: str | None
    aci: str
    device_id: int
    is_registered: bool  # False: Signal has refused it, such as after it was unlinked on the phone

    @property
    def is_primary(self) -> bool:
        """Whether the number was registered with signal-cli, instead of being linked to a phone."""
        return self.device_id == PRIMARY_DEVICE_ID

    @property
    def name(self) -> str:
        """The value of `signal-cli -a`."""
        return self.number or self.aci


def read_account(folder: Path, number: str | None) -> LinkedAccount | None:
    """Return the account to use; None if there is none yet. Raises AccountRefused if it is not clear which."""
    entries = [each for each in _read_json(folder / "data" / "accounts.json").get("accounts") or () if each.get("uuid")]
    found = [each for each in entries if number is None or each.get("number") == number]
    if len(found) > 1:
        numbers = ", ".join(str(each.get("number")) for each in found)
        raise AccountRefused.say(
            "signal.several_accounts_in_folder",
            "The folder {folder} has several Signal accounts: {numbers}. Set `account` to the one to use.",
            folder=folder,
            numbers=numbers,
        )
    if not found:
        if entries:
            raise AccountRefused.say(
                "signal.account_not_in_folder",
                "The folder {folder} has no Signal account {number}. Check `account`, or leave it out to use"
                " the account that is there.",
                folder=folder,
                number=str(number),
            )
        return None
    entry = found[0]
    state = _read_json(folder / "data" / str(entry.get("path", "")))
    return LinkedAccount(
        number=entry.get("number"),
        aci=str(entry["uuid"]),
        device_id=int(state.get("deviceId", 0)),
        is_registered=bool(state.get("registered")),
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise AccountRefused.say(
            "signal.file_unreadable",
            "The file {file} can't be read ({error}). Check its permissions, and that this is a folder of signal-cli.",
            file=path,
            error=type(error).__name__,
        ) from None
    return content if isinstance(content, dict) else {}


def describe_account(
    version: str,
    account: LinkedAccount | None,
    *,
    devices: Sequence[Mapping[str, Any]] = (),
    connected_at: datetime | None = None,
    now: datetime,
) -> AccountInfo:
    """Return what is known of an account; None for one that is not linked yet."""
    details = [f"signal-cli {version}"]
    warnings: list[str] = []
    if is_outdated(version):
        oldest = ".".join(map(str, OLDEST_RECEIVING_VERSION))
        warnings.append(
            say(
                "signal.too_old",
                "signal-cli {version} is too old: since {date}, versions before {oldest} miss messages."
                " Install the newest one from https://github.com/AsamK/signal-cli/releases.",
                version=version,
                date=OLDEST_RECEIVING_DATE,
                oldest=oldest,
            )
        )
    if account is None:
        return AccountInfo(warnings=tuple(warnings), details=tuple(details), is_linked=False)
    details.append(_describe_device(account, devices))
    if not account.is_primary:
        warnings += _describe_idleness(devices, connected_at, now)
    return AccountInfo(user_id=account.aci, name=account.number, warnings=tuple(warnings), details=tuple(details))


def is_outdated(version: str) -> bool:
    """Return whether a version may miss messages; an unknown one counts as new."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return match is not None and tuple(map(int, match.groups())) < OLDEST_RECEIVING_VERSION


def _describe_device(account: LinkedAccount, devices: Sequence[Mapping[str, Any]]) -> str:
    if account.is_primary:
        return say("signal.registered_number", "Registered number")
    created = _read_time(devices, account.device_id, "createdTimestamp")
    number = str(account.device_id)
    if created is None:
        return say("signal.linked_device", "Linked device {id}", id=number)
    return say("signal.linked_device_since", "Linked device {id}, since {day}", id=number, day=f"{created:%Y-%m-%d}")


def _describe_idleness(devices: Sequence[Mapping[str, Any]], connected_at: datetime | None, now: datetime) -> list[str]:
    warnings: list[str] = []
    if connected_at is not None and now - connected_at > IDLE_WARNING:
        warnings.append(
            say(
                "signal.device_away",
                "This device was last connected {days} days ago. Signal removes a linked device that is not"
                " connected for {limit} days.",
                days=(now - connected_at).days,
                limit=LINK_LIFETIME.days,
            )
        )
    seen = _read_time(devices, PRIMARY_DEVICE_ID, "lastSeenTimestamp")
    if seen is not None and now - seen > IDLE_WARNING:
        warnings.append(
            say(
                "signal.phone_away",
                "The phone of this account was last seen on {day}. Open Signal on it: Signal ends linked"
                " devices whose phone is not used.",
                day=f"{seen:%Y-%m-%d}",
            )
        )
    return warnings


def _read_time(devices: Sequence[Mapping[str, Any]], device_id: int, name: str) -> datetime | None:
    milliseconds = next((each.get(name) for each in devices if each.get("id") == device_id), None)
    if not isinstance(milliseconds, int) or milliseconds <= 0:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


async def link_device(program: str, folder: str, device_name: str, report: Callable[[LinkingPrompt], None]) -> None:
    """Show codes until a phone has linked this device.

    Raises ConnectionLost if signal-cli can't get one, and AccountRefused if none of them was scanned.
    """
    arguments = [program, "--config", folder, "link", "--name", device_name]
    for _ in range(MAX_CODES):
        if await _show_code(arguments, report):
            return
    raise AccountRefused.say(
        "signal.not_linked_in_time",
        "This account was not linked with a phone in time. Choose Connect now on the page, or run"
        " `palaver platforms connect signal`, and scan the new code.",
    )


async def _show_code(arguments: Sequence[str], report: Callable[[LinkingPrompt], None]) -> bool:
    """Show one code; return whether it was used before it expired."""
    process = await start_program(arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    errors = asyncio.create_task(_read_tail(process), name="palaver-signal-linking")
    try:
        return await _follow_linking(process, errors, report)
    except TimeoutError:
        raise ConnectionLost.say("signal.link_timeout", "signal-cli did not link this device in time.") from None
    finally:
        await stop_process(process)
        await asyncio.wait({errors}, timeout=1.0)


async def _follow_linking(
    process: asyncio.subprocess.Process, errors: asyncio.Task[str], report: Callable[[LinkingPrompt], None]
) -> bool:
    assert process.stdout is not None  # noqa: S101  (a pipe)
    code = await _read_code(process.stdout)
    if code is None:
        output = await errors
        raise find_setup_error(output) or ConnectionLost.say(
            "signal.no_link_code",
            "signal-cli could not get a code to link this device: {reason}",
            reason=hide_people(output.strip())[-200:],
        )
    expires_at = datetime.now(UTC) + timedelta(seconds=CODE_SECONDS)
    report(LinkingPrompt(instructions=INSTRUCTIONS, qr_text=code, expires_at=expires_at))
    is_used = False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MAX_CODE_SECONDS):
            is_used = bool(await process.stdout.readline())  # `Associated with: …`; it ends when the code has expired
    if not is_used:
        if process.stdout.at_eof() and "already exists" in await errors:
            raise AccountRefused.say(
                "signal.already_linked",
                "This phone's account is in the folder of signal-cli already, and Signal still accepts it"
                " there. Set `config_folder` to another folder, or remove the device on the phone first.",
            )
        return False
    async with asyncio.timeout(FINISH_SECONDS):
        await process.wait()
    log.info("signal_device_linked")
    return True


async def _read_code(stdout: asyncio.StreamReader) -> str | None:
    """Return the code; other lines, such as a picture of it, are passed over."""
    async with asyncio.timeout(CODE_START_SECONDS):
        while line := await stdout.readline():
            text = line.decode("utf-8", "replace").strip()
            if text.startswith(CODE_PREFIXES):
                return text
    return None


async def _read_tail(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None  # noqa: S101  (a pipe)
    tail = b""
    while chunk := await process.stderr.read(4096):
        tail = (tail + chunk)[-4096:]
    return tail.decode("utf-8", "replace")
