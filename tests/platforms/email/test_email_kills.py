"""`palaver serve`, killed while it sends a mail: only what the mail server may have taken is uncertain."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore
from support.gateway import wait_until

from ..killed_server import KilledServer, count_open_work, fetch_all, list_live_platforms, wait_for
from ..local_platform import ADA
from .local_email import LocalEmail

if TYPE_CHECKING:
    from pathlib import Path

    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow

STEPS = (
    "",
    "EHLO",
    "AUTH",
    "MAIL FROM",
    "RCPT TO",
)  # where the mail server hangs: from the first byte on, or after this


async def test_a_mail_is_uncertain_only_if_its_text_was_on_the_way(launcher: WarmLauncher, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with AsyncExitStack() as stack:
        local = await stack.enter_async_context(LocalEmail(tmp_path))
        smtp = local.server.smtp
        server = KilledServer(launcher, home, [local])
        server.start()
        stack.push_async_callback(server.kill)
        store = stack.enter_context(SessionStore.open(f"sqlite:///{home}/palaver.db"))
        await wait_for(lambda: list_live_platforms(store), {"email"})

        async def kill_at(step: str, text: str) -> None:
            """Kill the server when the mail server hangs at a step of the answer, and start it again."""
            count = smtp.count
            if step:
                smtp.hold_after = step.encode()
            else:
                smtp.hold()
            await local.say(ADA, ADA, text)
            await wait_until(lambda: smtp.count > count and not smtp.is_flowing)
            await server.kill()
            await smtp.cut()
            smtp.release()
            server.start()
            await wait_for(lambda: count_open_work(store), 0)

        for step in STEPS:
            await kill_at(step, f"killed at {step!r}")
        rows = await asyncio.to_thread(fetch_all, store, "SELECT state FROM delivery")
        assert rows == [("sent",)] * len(STEPS)
        assert len(local.server.mails) == len(STEPS)

        await kill_at("DATA", "killed at the text")
        [(state, error)] = await asyncio.to_thread(
            fetch_all, store, "SELECT state, error FROM delivery ORDER BY no DESC LIMIT 1"
        )
        assert state == "uncertain"
        assert "stopped while sending" in error
        assert len(local.server.mails) == len(STEPS), "it was not sent again by itself"
