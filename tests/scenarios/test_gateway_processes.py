"""Several gateways on one store: each message is one turn, whichever process receives it, runs it, stops or dies."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from palaver import SessionSource, SessionStore
from palaver.live.feed import Feed
from palaver.live.feed_events import DraftGrew, EventAppended, TurnChanged
from palaver.platforms.loopback import LOOPBACK
from palaver.sessions.draft import PieceKind
from scenarios.gateway_harness import (
    KILLED,
    FakePlatform,
    GatewayLauncher,
    finish_all_work,
    load_final_state,
    wait_for_rows,
)
from scenarios.gateway_process import format_plain_answer, format_text_after_action, format_text_before_action
from scenarios.store_harness import fetch_rows
from support.gateway import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from palaver.live.feed_events import FeedItem
    from palaver.sessions.turn import Turn

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]


@pytest.fixture
def launcher(gateway_launcher: GatewayLauncher) -> GatewayLauncher:
    return gateway_launcher


@pytest.fixture
def platform(store_url: str, tmp_path: Path) -> FakePlatform:
    return FakePlatform(store_url, tmp_path)


def test_a_message_received_five_times_by_each_of_two_processes_is_one_turn(
    launcher: GatewayLauncher, platform: FakePlatform
) -> None:
    gateways = [launcher.start(platform.build_options()) for _ in range(2)]
    for number in range(10):
        (message,) = platform.add_messages(f"plain {number}", user=f"user{number % 3}")
        for gateway in gateways:
            gateway.request(*[message.request] * 5)
        for gateway in gateways:
            for _ in range(5):
                platform.handle_report(gateway.wait_for("accepted"))
        assert platform.outcomes[message.id].count("duplicate") == 9
    final = load_final_state(platform, *gateways)
    final.check()
    assert (len(final.turns), final.count_turn_states()["done"], len(final.sends)) == (10, 10, 20)


def test_two_processes_share_the_work_and_keep_every_conversation_in_order(
    launcher: GatewayLauncher, platform: FakePlatform
) -> None:
    options = {"word_seconds": 0, "send_seconds": 0.15, "holds_answers": True}
    first = launcher.start(platform.build_options(max_running=4, **options))
    for round_number in range(3):
        for user in range(20):
            platform.add_messages(f"plain {user} {round_number}", user=f"user{user}")
    for message in platform.messages[:4]:
        first.request(message.request)
        platform.handle_report(first.wait_for("accepted"))
    wait_for_rows(platform.url, "SELECT 1 WHERE (SELECT COUNT(*) FROM turn WHERE state = 'running') = 4")
    second = launcher.start(platform.build_options(max_running=8, **options))  # the first one has no place left
    gateways = [first, second]
    for number, message in enumerate(platform.messages[4:]):
        gateways[number % 2].request(message.request)
    for number in range(len(platform.messages[4:])):
        platform.handle_report(gateways[number % 2].wait_for("accepted"))
    wait_for_rows(platform.url, second.query_claims("turn"))
    for gateway in gateways:
        gateway.request({"action": "continue_answers"})
    final = load_final_state(platform, *gateways)
    final.check()
    assert final.count_turn_states() == {"done": 60}
    assert {turn.attempt for turn in final.turns.values()} == {1}, "no turn is started by both"
    assert {delivery.state for delivery in final.deliveries} == {"sent"}


def test_one_process_recovers_the_turns_of_another_that_dies(launcher: GatewayLauncher, platform: FakePlatform) -> None:
    doomed = launcher.start(platform.build_options(word_seconds=0.05))
    platform.add_messages("plain a", "plain b", user="ada")
    platform.add_messages("plain c", "act d", user="bob")
    platform.send_messages(doomed)
    platform.wait_for_acknowledgements(doomed)
    survivor = launcher.start(platform.build_options())
    wait_for_rows(platform.url, doomed.query_claims("turn"))
    wait_for_rows(platform.url, "SELECT 1 FROM draft")
    doomed.kill()
    platform.add_messages("plain e", user="ada")
    platform.add_messages("plain f", user="eve")
    platform.send_messages(survivor)
    platform.wait_for_acknowledgements(survivor)
    final = load_final_state(platform, survivor)
    final.check()
    assert {turn.attempt for turn in final.turns.values()} == {1, 2}, "an unfinished answer is started again"


@pytest.mark.parametrize("has_keys", [False, True], ids=["no_keys", "keys"])
def test_deliveries_of_a_dead_process_are_recovered_by_a_process_that_is_never_idle(
    launcher: GatewayLauncher, platform: FakePlatform, has_keys: bool
) -> None:
    platform.has_idempotency_keys = has_keys
    doomed = launcher.start(platform.build_options(word_seconds=0, crash_at=["delivery.sent", 1]))
    wait_for_rows(platform.url, "SELECT 1 FROM platform_account WHERE lease_owner IS NOT NULL")  # it sends
    survivor = launcher.start(platform.build_options(word_seconds=0, recovery_seconds=0.3))
    platform.add_messages("plain", user="ada")
    platform.send_messages(doomed)
    while (report := doomed.read_report()) is not None:
        platform.handle_report(report)
    assert doomed.wait_for_exit() == KILLED
    for number in range(500):
        platform.add_messages(f"plain {number}", user=f"user{number % 5}")
        platform.send_messages(survivor)
        platform.wait_for_acknowledgements(survivor)
        time.sleep(0.01)  # too short for the survivor to become idle
        if not fetch_rows(platform.url, doomed.query_claims("delivery")):
            break
    assert not fetch_rows(platform.url, doomed.query_claims("delivery"))
    load_final_state(platform, survivor).check()


# -- shutdown -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grace_seconds", [5.0, 0.0], ids=["graceful", "hasty"])
def test_a_process_that_is_stopped_leaves_nothing_unfinished(
    launcher: GatewayLauncher, platform: FakePlatform, grace_seconds: float, seed: int
) -> None:
    chance, rounds = random.Random(seed), settings().max_examples // 4
    for number in range(rounds):
        gateway = launcher.start(platform.build_options(grace_seconds=grace_seconds))
        for user in range(4):
            platform.add_messages(f"plain {number} {user}", f"act {number} {user}", user=f"user{user}")
        platform.send_messages(gateway)
        time.sleep(chance.uniform(0, 0.08))
        os.kill(gateway.pid, signal.SIGTERM)
        while (report := gateway.read_report()) is not None:
            if "rejected" not in report:  # it no longer accepts messages: the platform sends them to the next gateway
                platform.handle_report(report)
        assert gateway.wait_for_exit() == 0
        assert fetch_rows(platform.url, "SELECT id FROM turn WHERE state = 'running'") == []
        assert fetch_rows(platform.url, "SELECT id FROM delivery WHERE state = 'sending'") == []
        assert fetch_rows(platform.url, "SELECT no FROM draft") == []
    final = finish_all_work(launcher, platform)
    final.check()
    assert {delivery.state for delivery in final.deliveries} == {"sent"}
    assert {turn.attempt for turn in final.turns.values()} == {1}, "a released turn does not count as an attempt"
    if grace_seconds:
        assert final.count_turn_states() == {"done": rounds * 4 * 2}


# -- recovery -------------------------------------------------------------------------------------------------


def test_two_processes_that_recover_at_once_do_not_recover_the_same_work(
    launcher: GatewayLauncher, platform: FakePlatform
) -> None:
    for number in range(2):
        crash_at = ["turn.after_tool", 2] if number % 2 else ["delivery.sent", 2]
        doomed = launcher.launch(platform.build_options(crash_at=crash_at))
        for user in ("ada", "bob", "eve"):
            platform.add_messages(f"act {number} {user}", f"plain {number} {user}", user=user)
        platform.send_messages(doomed)
        platform.wait_for_acknowledgements(doomed)
        assert doomed.wait_for_exit() == KILLED
        platform.save_drafts()
        gateways = [launcher.launch(platform.build_options()) for _ in range(2)]
        platform.send_messages(gateways[number % 2])
        platform.wait_for_acknowledgements(gateways[number % 2])
        final = load_final_state(platform, *gateways)
        final.check()
    assert final.count_turn_states()["interrupted"] > 0
    assert Counter(delivery.state for delivery in final.deliveries)["uncertain"] > 0


# -- following ------------------------------------------------------------------------------------------------


@dataclass
class Screen:
    """What a follower of a conversation sees."""

    log: list[tuple[str, str]] = field(default_factory=list)
    draft: str = ""
    turn: Turn | None = None

    def show(self, item: FeedItem) -> None:
        if isinstance(item, DraftGrew):
            text = "".join(piece.text for piece in item.pieces if piece.kind is PieceKind.TEXT)
            self.draft = text if item.replaces_draft else self.draft + text
        elif isinstance(item, EventAppended) and item.event.message is not None:
            self.log.append((item.event.message.role, item.event.message.text))
        elif isinstance(item, TurnChanged):
            self.turn = item.turn


@asynccontextmanager
async def follow(url: str, session_id: str) -> AsyncIterator[AsyncIterator[Screen]]:
    """Follow a conversation of Ada in this process; yields the screen after each change."""
    with SessionStore.open(url) as store:
        feed, screen = Feed(store), Screen()
        await feed.start()
        principal = store.get_or_create_person(SessionSource(LOOPBACK, "ada", user_id="ada")).principal

        async def screens() -> AsyncGenerator[Screen, None]:
            async with aclosing(feed.follow(principal, session_id, after=0)) as items:
                async for item in items:
                    screen.show(item)
                    yield screen

        try:
            async with asyncio.timeout(30), aclosing(screens()) as stream:
                yield stream
        finally:
            await feed.stop()


@pytest.mark.parametrize(
    ("store_url", "kind", "ending"),
    [
        *(("sqlite", kind, ending) for kind in ("plain", "act") for ending in ("killed", "stopped")),
        *(("postgres", "plain", "killed"), ("postgres", "act", "stopped")),
    ],
    indirect=["store_url"],
)
async def test_a_follower_ends_with_the_stored_conversation_whichever_process_answers(
    launcher: GatewayLauncher, platform: FakePlatform, kind: str, ending: str
) -> None:
    options = platform.build_options(grace_seconds=0, holds_answers=True)
    first, second = (launcher.start(options) for _ in range(2))
    (message,) = platform.add_messages(f"{kind} story")
    platform.send_messages(first)
    platform.wait_for_acknowledgements(first)
    wait_for_rows(platform.url, "SELECT 1 FROM draft")
    if not fetch_rows(platform.url, first.query_claims("turn")):
        first, second = second, first
    ((session_id,),) = fetch_rows(platform.url, "SELECT id FROM session")
    if kind == "act":
        first_part = format_text_before_action(message.text)
        full_text = first_part + format_text_after_action(message.text, [])
    else:
        full_text = format_plain_answer(message.text)
        first_part = full_text[:20]
    async with follow(platform.url, session_id) as screens:
        async for screen in screens:
            if screen.draft.startswith(first_part):
                break
        await wait_until(lambda: kind == "plain" or platform.count_actions())
        draft_before = screen.draft
        second.request({"action": "continue_answers"})
        os.kill(first.pid, signal.SIGKILL if ending == "killed" else signal.SIGTERM)
        async for screen in screens:
            assert full_text.startswith(screen.draft), "an answer that starts again is shown from its beginning"
            if screen.turn is not None and screen.turn.state.has_ended:
                break
    first.wait_for_exit()
    final = load_final_state(platform, second)
    final.check()
    assert screen.log == [(message.role, message.text) for message in final.messages]
    answer = "".join(message.text for message in final.messages if message.role == "assistant")
    assert answer.startswith(draft_before)
    assert final.count_turn_states() == ({"done": 1} if kind == "plain" else {"interrupted": 1})
