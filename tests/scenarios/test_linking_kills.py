"""`kill -9` in every step of linking and unlinking: afterwards nothing of the step has happened, or all of it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore
from palaver.core.engines.base import Read
from palaver.sessions.inbound import Inbound
from scenarios.kill_cases import build_cases
from scenarios.store_harness import find_inconsistencies, wait_for_disconnect
from support.crashing import list_crash_points
from support.inbox import make_inbox
from support.people import Town, chat, find_code
from support.store_content import dump_tables

if TYPE_CHECKING:
    from palaver.testing import FakeClock
    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("linking_process.py")
ADA, EVE = ("ada", "telegram"), ("eve", "matrix")
TABLES = (
    *("person", "identity", "audience_member", "session", "lane", "lane_move", "link_code", "linked_row", "turn"),
    *("project", "job", "budget_window", "read_mark", "delivery", "inbound_message", "chat_access"),
)
# What each side sends, in order. A step is killed at each of its crash points; `inbox.accepted` is after the commit.
STEPS = (
    (ADA, "/link", ("link.stored",)),
    (EVE, "/link CODE", ("link.stored", "inbox.accepted")),
    (ADA, "/link confirm", ("link.stored", "inbox.accepted")),
    (EVE, "/link confirm", ("link.stored", "link.moved", "inbox.accepted")),
    (ADA, "/unlink matrix", ("unlink.moved", "inbox.accepted")),
)
POINTS = [
    (f"{step} {point}", passing)
    for step, (_, _, points) in enumerate(STEPS)
    for point in points
    for passing in ((1, 2) if (step, point) == (3, "link.stored") else (1,))
]
CASES = build_cases(
    POINTS,
    {
        *(("sqlite", *case) for case in POINTS),
        *(("postgres", *case) for case in (("1 link.stored", 1), ("3 link.moved", 1), ("3 link.stored", 2))),
        ("postgres", "4 unlink.moved", 1),
    },
)


def test_the_table_has_every_crash_point() -> None:
    points = list_crash_points("link.", "unlink.")
    assert points | {"inbox.accepted"} == {point for _, _, points in STEPS for point in points}


async def send(url: str, who: tuple[str, str], text: str, message_id: str) -> str:
    with SessionStore.open(url) as store:
        inbound = Inbound(source=chat(*who), content=text, message_id=message_id)
        return (await make_inbox(store).accept(inbound)).reply or ""


async def settle(url: str, clock: FakeClock) -> None:
    with SessionStore.open(url) as store:
        town = Town(store, clock)
        for who in (ADA, EVE):
            await town.add_person(chat(*who))
            await send(url, who, f"{who[0]} before", f"before-{who[0]}")


def read_owners(url: str) -> list[str]:
    """Return the person of each account and of each conversation, by name of the account and first words."""
    with SessionStore.open(url) as store:
        found = store.engine.run(
            Read(
                lambda tx: tx.fetch_all(
                    "SELECT i.account, s.preview FROM identity i JOIN audience_member m ON m.person_id = i.person_id"
                    " JOIN session s ON s.audience_no = m.audience_no WHERE i.platform <> 'local' ORDER BY 1, 2"
                )
            )
        )
        return [f"{account} sees {preview}" for account, preview in found]


ALONE = ["ada sees ada before", "eve sees eve before"]
TOGETHER = [f"{who} sees {text} before" for who in ("ada", "eve") for text in ("ada", "eve")]


@pytest.mark.parametrize(("store_url", "point", "passing"), CASES, indirect=["store_url"])
def test_a_step_of_linking_is_done_completely_or_not_at_all(
    launcher: WarmLauncher, store_url: str, clock: FakeClock, point: str, passing: int
) -> None:
    number, _, name = point.partition(" ")
    asyncio.run(settle(store_url, clock))
    code = ""
    for step, (who, template, _) in enumerate(STEPS):
        text = template.replace("CODE", code)
        if step == int(number):
            with SessionStore.open(store_url) as store:
                before = dump_tables(store, *TABLES)
            killed = launcher.run_script(SCRIPT, store_url, *who, text, f"m{step}", name, str(passing))
            assert killed.returncode == -signal.SIGKILL, killed.stderr
            wait_for_disconnect(store_url)
            with SessionStore.open(store_url) as store:
                after = dump_tables(store, *TABLES)
            assert (after == before) == (name != "inbox.accepted"), "nothing has happened before the commit"
            if name == "inbox.accepted":
                asyncio.run(send(store_url, who, text, f"m{step}"))  # the platform sends it again: it changes nothing
                with SessionStore.open(store_url) as store:
                    assert dump_tables(store, *TABLES) == after
                continue
        reply = asyncio.run(send(store_url, who, text, f"m{step}"))
        code = find_code(reply) if step == 0 else code
        assert read_owners(store_url) == (TOGETHER if step == 3 else ALONE)
    assert read_owners(store_url) == ALONE
    assert find_inconsistencies(store_url) == []
