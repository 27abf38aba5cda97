"""`kill -9` while a notification is sent to a browser: it is not lost, and sent twice only if it may have arrived."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionStore
from palaver.core.engines.base import Read
from scenarios.kill_cases import build_cases
from scenarios.store_harness import find_inconsistencies, wait_for_disconnect
from support.crashing import list_crash_points
from support.push_service import PushService

if TYPE_CHECKING:
    from support.push_service import PushBrowser
    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("push_process.py")
SENT_BEFORE_CRASH = {"push.claimed": 0, "push.sent": 1}
LATER_MINUTES = 3  # longer than a process may take to send what it has claimed


def test_the_table_has_every_crash_point() -> None:
    assert list_crash_points("push.") == set(SENT_BEFORE_CRASH)


class Servers:
    """Starts servers on one database, one after the other, all for one subscribed browser."""

    def __init__(self, launcher: WarmLauncher, url: str, folder: Path, browser: PushBrowser) -> None:
        self._launcher = launcher
        self._options: dict[str, Any] = {"url": url, "folder": str(folder), "subscription": browser.subscription}

    async def run(self, text: str | None = None, minutes: int = 0, crash_at: str | None = None) -> None:
        """Run a server until everything is sent, or until it kills itself."""
        arguments = json.dumps({**self._options, "text": text, "minutes": minutes, "crash_at": crash_at})
        ended = await asyncio.to_thread(self._launcher.run_script, SCRIPT, arguments)
        assert ended.returncode == (0 if crash_at is None else -signal.SIGKILL), ended.stderr
        await asyncio.to_thread(wait_for_disconnect, self._options["url"])


@pytest.mark.parametrize(
    ("store_url", "point"),
    build_cases(
        [("push.claimed",), ("push.sent",)],
        {("sqlite", "push.claimed"), ("sqlite", "push.sent"), ("postgres", "push.claimed"), ("postgres", "push.sent")},
    ),
    indirect=["store_url"],
)
async def test_a_notification_is_sent_after_a_kill_and_delays_no_other(
    launcher: WarmLauncher, store_url: str, tmp_path: Path, point: str
) -> None:
    async with PushService() as service:
        servers = Servers(launcher, store_url, tmp_path, service.add_browser())
        await servers.run("first", crash_at=point)
        titles = ["first"] * SENT_BEFORE_CRASH[point]
        assert get_titles(service) == titles
        assert load_rows(store_url) == [(1,)], "it is claimed, and not forgotten"

        # The dead process might still be sending it. Others don't wait for it.
        await servers.run("second")
        titles.append("second")
        assert get_titles(service) == titles
        assert load_rows(store_url) == [(1,)]

        await servers.run(minutes=LATER_MINUTES)
        titles.append("first")
        assert get_titles(service) == titles
        assert load_rows(store_url) == []
        await servers.run(minutes=2 * LATER_MINUTES)
        assert get_titles(service) == titles

        # If it came twice, the second replaces the first: at the push service by its topic, in the browser by its tag.
        sent = [index for index, title in enumerate(titles) if title == "first"]
        assert len({service.requests[index]["topic"] for index in sent}) == 1
        assert len({service.messages[index][1]["session"] for index in sent}) == 1
    assert find_inconsistencies(store_url) == []


def get_titles(service: PushService) -> list[str]:
    return [content["title"] for _, content in service.messages]


def load_rows(url: str) -> list[Any]:
    """Return the attempts of all notifications that are on their way."""
    with SessionStore.open(url) as store:
        return store.engine.run(Read(lambda tx: tx.fetch_all("SELECT attempts FROM push_message")))
