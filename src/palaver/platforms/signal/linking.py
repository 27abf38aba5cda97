"""Links signal-cli to a phone: shows a code to scan, a new one when it has expired, until a phone has scanned it."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from palaver.core.errors import AccountRefused, ConnectionLost
from palaver.delivery.health_model import LinkingPrompt
from palaver.platforms.signal.client import start_program, stop_process
from palaver.platforms.signal.failures import find_setup_error, hide_people

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

CODE_SECONDS: Final = 60.0  # Signal closes the connection that a code belongs to after about so long
MAX_CODE_SECONDS: Final = 120.0  # if signal-cli does not notice; the phone may have scanned it at the last moment
MAX_CODES: Final = 15  # then the owner does not seem to wait for one, and each costs a start of signal-cli
CODE_START_SECONDS: Final = 60.0  # until signal-cli shows a code
FINISH_SECONDS: Final = 60.0  # for the rest, after the code was scanned
CODE_PREFIXES: Final = ("sgnl://linkdevice", "tsdevice:")
INSTRUCTIONS: Final = (
    "Open Signal on your phone, choose Settings, then Linked devices, then Link new device, and scan this code. "
    "You need not transfer your message history."
)


async def link_device(program: str, folder: str, device_name: str, report: Callable[[LinkingPrompt], None]) -> None:
    """Show codes until a phone has linked this device.

    Raises ConnectionLost if signal-cli can't get one, and AccountRefused if none of them was scanned.
    """
    arguments = [program, "--config", folder, "link", "--name", device_name]
    for _ in range(MAX_CODES):
        if await _show_code(arguments, report):
            return
    raise AccountRefused(
        "This account was not linked with a phone in time. Choose Connect now on the page, or run `palaver platforms "
        "connect signal`, and scan the new code."
    )


async def _show_code(arguments: Sequence[str], report: Callable[[LinkingPrompt], None]) -> bool:
    """Show one code; return whether it was used before it expired."""
    process = await start_program(arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    errors = asyncio.create_task(_read_tail(process), name="palaver-signal-linking")
    try:
        return await _follow_linking(process, errors, report)
    except TimeoutError:
        raise ConnectionLost("signal-cli did not link this device in time.") from None
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
        raise find_setup_error(output) or ConnectionLost(
            f"signal-cli could not get a code to link this device: {hide_people(output.strip())[-200:]}"
        )
    expires_at = datetime.now(UTC) + timedelta(seconds=CODE_SECONDS)
    report(LinkingPrompt(instructions=INSTRUCTIONS, qr_text=code, expires_at=expires_at))
    if not await _wait_for_phone(process.stdout):
        if process.stdout.at_eof() and "already exists" in await errors:
            raise AccountRefused(
                "This phone's account is in the folder of signal-cli already, and Signal still accepts it there. "
                "Set `config_folder` to another folder, or remove the device on the phone first."
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


async def _wait_for_phone(stdout: asyncio.StreamReader) -> bool:
    """Wait for what signal-cli says when it is linked; False if the code has expired, with which it ends."""
    try:
        async with asyncio.timeout(MAX_CODE_SECONDS):
            return bool(await stdout.readline())  # `Associated with: …`
    except TimeoutError:
        return False


async def _read_tail(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None  # noqa: S101  (a pipe)
    tail = b""
    while chunk := await process.stderr.read(4096):
        tail = (tail + chunk)[-4096:]
    return tail.decode("utf-8", "replace")
