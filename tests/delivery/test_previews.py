"""Answers while they are being written: one growing message in the chat, which the delivery completes; and typing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import TextDelta, Tool, ToolCall, ToolResult
from palaver.core.background import is_owner_dead
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import DeliveryError, LeaseLost, SendRejected, SendRetryable, SendUncertain
from palaver.delivery import parts as part_outcomes, preview_stream, previews_table as previews
from palaver.delivery.model import Capabilities, Pace
from palaver.delivery.preview_stream import build_preview_text
from palaver.delivery.previews import REPLACED_TEXT, STOPPED_TEXT
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.sessions.delivery import Address, Button, DeliveryState
from palaver.sessions.draft import Piece, PieceKind
from palaver.testing import ScriptedAgent
from support.deliveries import list_deliveries, wait_for_delivery
from support.gateway import wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from palaver.delivery.adapter import OutgoingMessage
    from palaver.gateway.gateway import Gateway
    from support.gateway import StartGateway

pytestmark = pytest.mark.slow

EDITS = Capabilities(can_edit=True, can_delete=True, edit_pace=Pace(0.0), draft_pace=Pace(0.0), max_buttons=3)


class SteppingAgent:
    """Produces the next piece of its answer when the test says so."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[AgentEvent | None] = asyncio.Queue()

        async def run(_arguments: Any) -> str:
            return "done"

        look = Tool(name="look", description="Look.", parameters={"type": "object"}, run=run)
        self.agent = ScriptedAgent(self._answer, tools=[look])

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        while (piece := await self.pieces.get()) is not None:
            yield piece

    def say(self, *texts: str) -> None:
        for text in texts:
            self.pieces.put_nowait(TextDelta(text))

    def finish(self) -> None:
        self.pieces.put_nowait(None)


class RefusingAdapter(LoopbackAdapter):
    """Raises an error for chosen edits and deletions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.edit_errors: list[DeliveryError] = []  # one for each edit to come
        self.final_errors: list[DeliveryError] = []  # the same, for edits that complete an answer
        self.delete_errors: list[DeliveryError] = []

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        errors = self.edit_errors if message.is_preview else self.final_errors
        if errors:
            raise errors.pop(0)
        await super().edit(message_id, message)

    async def delete(self, address: Address, message_id: str) -> None:
        if self.delete_errors:
            raise self.delete_errors.pop(0)
        await super().delete(address, message_id)


@pytest.fixture(autouse=True)
def _be_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview_stream, "PREVIEW_DELAY_SECONDS", 0.0)
    monkeypatch.setattr(part_outcomes, "compute_retry_delay", lambda *_args, **_kwargs: timedelta(milliseconds=1))


def list_bodies(loopback: LoopbackAdapter) -> list[str]:
    """List what people see in the chat now."""
    return [message.body for message in loopback.messages.values()]


async def wait_for_body(loopback: LoopbackAdapter, *bodies: str) -> None:
    await wait_until(lambda: list_bodies(loopback) == list(bodies))


async def count_previews(gateway: Gateway) -> int:
    rows = await gateway.store.engine.arun(Read(lambda tx: tx.fetch_all("SELECT no FROM preview")))
    return len(rows)


async def wait_until_no_preview_is_stored(gateway: Gateway) -> None:
    while await count_previews(gateway):  # noqa: ASYNC110  (it is in the database)
        await asyncio.sleep(0.005)


async def test_an_answer_grows_in_one_message_that_its_delivery_completes(start_gateway: StartGateway) -> None:
    loopback, steps = LoopbackAdapter(capabilities=EDITS), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello", message_id="m1")
    steps.say("One")
    await wait_for_body(loopback, "One")
    steps.say(" two", " three")
    await wait_for_body(loopback, "One two three")
    (preview,) = loopback.messages.values()
    assert (preview.is_preview, preview.reply_to) == (True, "m1")
    assert list(preview.buttons) == [Button("Stop", f"stop:{receipt.turn_id}")]
    steps.say(" four.")
    steps.finish()
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT
    (final,) = loopback.messages.values()
    assert (final.body, final.is_preview, list(final.buttons)) == ("One two three four.", False, [])
    assert len(loopback.sent) == 1
    assert await count_previews(gateway) == 0


async def test_a_long_answer_replaces_the_growing_message_by_its_first_part(start_gateway: StartGateway) -> None:
    class ParagraphAdapter(LoopbackAdapter):
        def render(self, markdown: str) -> list[str]:
            return markdown.split("\n\n")

    loopback, steps = ParagraphAdapter(capabilities=EDITS), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("one\n\ntwo")
    await wait_for_body(loopback, "two")
    steps.say("\n\nthree")
    steps.finish()
    await wait_for_delivery(gateway, receipt.session_id)
    assert list_bodies(loopback) == ["one", "two", "three"]


async def test_a_quick_answer_has_no_growing_message(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview_stream, "PREVIEW_DELAY_SECONDS", 60.0)
    loopback = LoopbackAdapter(capabilities=EDITS)
    gateway = await start_gateway(loopback=loopback)
    receipt = await loopback.say("hello")
    await wait_for_delivery(gateway, receipt.session_id)
    assert (list_bodies(loopback), loopback.edits) == (["Done."], [])


async def test_streaming_can_be_switched_off(start_gateway: StartGateway) -> None:
    loopback, steps = LoopbackAdapter(capabilities=replace(EDITS, typing_seconds=0.1)), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback, unstreamed_platforms=frozenset({LOOPBACK}))
    receipt = await loopback.say("hello")
    steps.say("One")
    await wait_until(lambda: loopback.typing)
    assert loopback.sent == []
    steps.finish()
    await wait_for_delivery(gateway, receipt.session_id)
    assert (list_bodies(loopback), loopback.edits) == (["One"], [])


async def test_a_tool_step_is_one_line_until_the_answer_goes_on(start_gateway: StartGateway) -> None:
    loopback, steps = LoopbackAdapter(capabilities=EDITS), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("Let me look.")
    await wait_for_body(loopback, "Let me look.")
    steps.pieces.put_nowait(ToolCall("c1", "look", "{}"))
    await wait_for_body(loopback, "Let me look.\n\n*Using look…*")
    steps.pieces.put_nowait(ToolResult("c1", "look", "found"))
    steps.say("Here it is.")
    await wait_for_body(loopback, "Let me look.\n\nHere it is.")
    steps.finish()
    await wait_for_delivery(gateway, receipt.session_id)
    assert list_bodies(loopback) == ["Let me look.\n\nHere it is."]


async def test_edits_keep_to_the_pace_and_show_the_newest_text(start_gateway: StartGateway) -> None:
    capabilities = replace(EDITS, edit_pace=Pace(1.0))
    loopback, steps = LoopbackAdapter(capabilities=capabilities), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("0")
    await wait_for_body(loopback, "0")
    for number in range(1, 10):
        steps.say(f" {number}")
    await wait_for_body(loopback, "0 1 2 3 4 5 6 7 8 9")
    assert len(loopback.edits) == 1, "nothing is queued up"
    steps.finish()
    await wait_for_delivery(gateway, receipt.session_id)


@pytest.mark.parametrize("whole_account", [False, True])
async def test_an_edit_that_comes_too_early_is_made_up_for(start_gateway: StartGateway, whole_account: bool) -> None:
    loopback, steps = RefusingAdapter(capabilities=EDITS), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("One")
    await wait_for_body(loopback, "One")
    loopback.edit_errors.append(SendRetryable("slow down", retry_after=0.05, whole_account=whole_account))
    steps.say(" two")
    await wait_for_body(loopback, "One two")
    loopback.final_errors.append(SendRetryable("slow down", retry_after=0.05, whole_account=whole_account))
    steps.finish()
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT
    assert list_bodies(loopback) == ["One two"]


# -- the end of a growing message ----------------------------------------------------------------------------------


@pytest.mark.both_engines
@pytest.mark.parametrize("can_delete", [True, False])
async def test_if_the_growing_message_cannot_be_replaced_it_goes_away(
    start_gateway: StartGateway, can_delete: bool
) -> None:
    loopback, steps = RefusingAdapter(capabilities=replace(EDITS, can_delete=can_delete)), SteppingAgent()
    loopback.final_errors.append(SendRejected("message can't be edited"))
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("One")
    await wait_for_body(loopback, "One")
    steps.say(" two.")
    steps.finish()
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT
    expected = ["One two."] if can_delete else [REPLACED_TEXT, "One two."]
    await wait_for_body(loopback, *expected)
    await wait_until_no_preview_is_stored(gateway)


async def test_an_edit_of_which_the_answer_was_lost_is_repeated(start_gateway: StartGateway) -> None:
    loopback, steps = RefusingAdapter(capabilities=EDITS), SteppingAgent()
    loopback.final_errors += [SendUncertain("the answer was lost")] * 3
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("One")
    await wait_for_body(loopback, "One")
    steps.finish()
    assert (await wait_for_delivery(gateway, receipt.session_id)).state is DeliveryState.SENT
    assert (list_bodies(loopback), len(loopback.sent)) == (["One"], 1)


@pytest.mark.parametrize("can_delete", [True, False])
async def test_a_turn_without_an_answer_leaves_no_growing_message(
    start_gateway: StartGateway, can_delete: bool
) -> None:
    loopback, steps = RefusingAdapter(capabilities=replace(EDITS, can_delete=can_delete)), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.pieces.put_nowait(ToolCall("c1", "look", "{}"))
    await wait_for_body(loopback, "*Using look…*")
    steps.pieces.put_nowait(ToolResult("c1", "look", "found"))
    steps.finish()
    await wait_for_turn(gateway, receipt.turn_id)
    assert await list_deliveries(gateway, receipt.session_id) == []
    await wait_for_body(loopback, *([] if can_delete else [STOPPED_TEXT]))
    await wait_until_no_preview_is_stored(gateway)


async def test_a_deleted_conversation_leaves_no_growing_message(start_gateway: StartGateway) -> None:
    loopback, steps = LoopbackAdapter(capabilities=EDITS), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("One")
    await wait_for_body(loopback, "One")
    gateway.store.delete_session(receipt.session_id or "")
    await wait_for_body(loopback)
    await wait_until_no_preview_is_stored(gateway)
    steps.finish()


async def test_a_stopped_answer_says_so_in_its_message(start_gateway: StartGateway) -> None:
    loopback, steps = LoopbackAdapter(capabilities=EDITS), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello", message_id="m1")
    steps.say("One")
    await wait_for_body(loopback, "One")
    await loopback.say("/stop", message_id="m2")
    await wait_for_turn(gateway, receipt.turn_id)
    await wait_until(lambda: any("(Stopped)" in body for body in list_bodies(loopback)))
    assert list_bodies(loopback)[0] == "One\n\n(Stopped)"


# -- after a crash -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_keys", [True, False])
async def test_a_growing_message_whose_id_is_unknown_is_found_by_its_key(
    start_gateway: StartGateway, has_keys: bool, caplog: pytest.LogCaptureFixture
) -> None:
    capabilities = replace(EDITS, key_lifetime=timedelta(days=1 if has_keys else 0))
    loopback, steps = LoopbackAdapter(capabilities=capabilities), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback, unstreamed_platforms=frozenset({LOOPBACK}))
    receipt = await loopback.say("hello")
    await wait_until(lambda: gateway.turn_worker.running_count)

    def die_while_sending(tx: Transaction) -> None:
        (turn,) = previews.list_running_turns(tx)
        previews.add_preview(tx, turn, "host/1/0/dead", to_micros(gateway.store.clock.now()), is_owner_dead)

    await gateway.store.engine.arun(Write(die_while_sending))
    steps.say("One.")
    steps.finish()
    delivery = await wait_for_delivery(gateway, receipt.session_id)
    assert (delivery.state, list_bodies(loopback)) == (DeliveryState.SENT, ["One."])
    keys = [message.key for message in loopback.sent]
    assert keys == ([f"{receipt.turn_id}.p"] if has_keys else [f"{delivery.id}.1"])
    assert ("preview_lost" in caplog.text) == (not has_keys)
    assert await count_previews(gateway) == 0


@pytest.mark.both_engines
async def test_a_new_attempt_goes_on_with_the_same_message(start_gateway: StartGateway) -> None:
    loopback, steps = LoopbackAdapter(capabilities=EDITS), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("One")
    await wait_for_body(loopback, "One")
    await gateway.stop(0)  # the turn is released
    assert await count_previews(gateway) == 1
    again, other_steps = LoopbackAdapter(capabilities=EDITS), SteppingAgent()
    again.messages = loopback.messages
    other = await start_gateway(other_steps.agent, loopback=again)
    other_steps.say("Another")
    await wait_for_body(again, "Another")
    other_steps.finish()
    await wait_for_delivery(other, receipt.session_id)
    assert (list_bodies(again), again.sent) == (["Another"], [])


# -- after a pause -------------------------------------------------------------------------------------------------


class SharedChatAdapter(LoopbackAdapter):
    """Sends to a chat that other processes send to as well. While it is paused, its calls don't reach the chat."""

    def __init__(self, chat: dict[str, OutgoingMessage], capabilities: Capabilities) -> None:
        super().__init__(capabilities=capabilities)
        self.messages = chat  # by id; the id of the first message that was sent with a key is the key
        self.may_continue = asyncio.Event()
        self.may_continue.set()
        self.held_calls = 0

    def pause(self) -> None:
        self.may_continue.clear()

    async def _hold(self) -> None:
        self.held_calls += not self.may_continue.is_set()
        await self.may_continue.wait()

    async def send(self, message: OutgoingMessage) -> str:
        await self._hold()
        self.sent.append(message)
        if message.key in self.messages and self.capabilities.key_lifetime:
            return message.key
        message_id = f"{message.key} again" if message.key in self.messages else message.key
        self.messages[message_id] = message
        return message_id

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        await self._hold()
        self.edits.append((message_id, message))
        if message_id not in self.messages:
            raise SendRejected("There is no such message.")
        self.messages[message_id] = message


async def take_account_over(
    start_gateway: StartGateway, paused: SharedChatAdapter, other: SharedChatAdapter
) -> Gateway:
    """Start a process that takes over the account of one that is paused, as if the lease of that one had expired."""
    gateway = await start_gateway()
    await gateway.store.engine.arun(Write(lambda tx: tx.execute("UPDATE platform_account SET lease_until = 0")))
    taker = await start_gateway(loopback=other)
    await wait_until(lambda: LOOPBACK in taker.platforms)
    paused.disconnect(LeaseLost("Another process runs this account."))
    return taker


@pytest.fixture
def _wait_for_held_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview_stream, "CALL_TIMEOUT_SECONDS", 60.0)


@pytest.mark.both_engines
@pytest.mark.usefixtures("_wait_for_held_calls")
async def test_an_edit_of_a_process_that_was_paused_does_not_replace_the_answer(start_gateway: StartGateway) -> None:
    chat: dict[str, OutgoingMessage] = {}
    paused, other, steps = SharedChatAdapter(chat, EDITS), SharedChatAdapter(chat, EDITS), SteppingAgent()
    connected = await start_gateway(loopback=paused)
    await connected.turn_worker.stop()
    working = await start_gateway(steps.agent)
    receipt = await paused.say("hello")
    steps.say("One")
    await wait_for_body(paused, "One")
    paused.pause()
    steps.say(" two")
    await wait_until(lambda: paused.held_calls)
    taker = await take_account_over(start_gateway, paused, other)
    steps.say(" three.")
    steps.finish()
    delivery = await wait_for_delivery(working, receipt.session_id)
    assert delivery.state is DeliveryState.SENT
    await wait_until_no_preview_is_stored(taker)
    paused.may_continue.set()
    await wait_until(lambda: paused.edits)
    assert list_bodies(other) == ["One two three."]


@pytest.mark.both_engines
@pytest.mark.usefixtures("_wait_for_held_calls")
@pytest.mark.parametrize("has_keys", [True, False])
async def test_a_growing_message_that_a_paused_process_sends_after_the_answer_does_not_stay(
    start_gateway: StartGateway, has_keys: bool
) -> None:
    capabilities = replace(EDITS, key_lifetime=timedelta(days=1 if has_keys else 0))
    chat: dict[str, OutgoingMessage] = {}
    paused, other = SharedChatAdapter(chat, capabilities), SharedChatAdapter(chat, capabilities)
    steps = SteppingAgent()
    connected = await start_gateway(loopback=paused)
    await connected.turn_worker.stop()
    working = await start_gateway(steps.agent)
    receipt = await paused.say("hello")
    paused.pause()
    steps.say("One")
    await wait_until(lambda: paused.held_calls)
    taker = await take_account_over(start_gateway, paused, other)
    steps.say(" two.")
    steps.finish()
    delivery = await wait_for_delivery(working, receipt.session_id)
    assert (delivery.state, list_bodies(other)) == (DeliveryState.SENT, ["One two."])
    paused.may_continue.set()
    await wait_until(lambda: paused.sent)
    await connected.outbox.stop()  # what was sent is stored
    taker.outbox.wake()
    await wait_until_no_preview_is_stored(taker)
    assert list_bodies(other) == ["One two."]
    assert len(other.deleted) == (0 if has_keys else 1)


# -- other ways to show it -----------------------------------------------------------------------------------------


async def test_a_platform_that_streams_itself_keeps_no_growing_message(start_gateway: StartGateway) -> None:
    capabilities = replace(EDITS, has_native_stream=True, edit_pace=Pace(1000.0))  # a draft is no edit
    loopback, steps = LoopbackAdapter(capabilities=capabilities), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("One")
    await wait_until(lambda: [body for _, _, body in loopback.drafts][-1:] == ["One"])
    steps.say(" two")
    await wait_until(lambda: [body for _, _, body in loopback.drafts][-1:] == ["One two"])
    assert loopback.messages == {}
    steps.finish()
    await wait_for_delivery(gateway, receipt.session_id)
    assert ([message.body for message in loopback.sent], loopback.edits) == (["One two"], [])


async def test_where_the_own_stream_is_not_supported_a_message_grows(start_gateway: StartGateway) -> None:
    class GroupAdapter(LoopbackAdapter):
        async def show_draft(self, address: Address, key: str, body: str) -> bool:
            return False

    loopback, steps = GroupAdapter(capabilities=replace(EDITS, has_native_stream=True)), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    steps.say("One")
    await wait_for_body(loopback, "One")
    steps.finish()
    await wait_for_delivery(gateway, receipt.session_id)


async def test_typing_is_kept_alive_and_ends_with_the_turn(start_gateway: StartGateway) -> None:
    class TypingAdapter(LoopbackAdapter):
        is_typing = False

        async def show_typing(self, address: Address) -> None:
            self.is_typing = True
            await super().show_typing(address)

        async def stop_typing(self, address: Address) -> None:
            self.is_typing = False

    loopback, steps = TypingAdapter(capabilities=Capabilities(typing_seconds=0.1)), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello")
    await wait_until(lambda: len(loopback.typing) >= 2)
    steps.say("One")
    steps.finish()
    await wait_for_delivery(gateway, receipt.session_id)
    await wait_until(lambda: not loopback.is_typing)
    assert not gateway.outbox._previews._streams


@pytest.mark.parametrize("typing_seconds", [None, 0.1], ids=["no-sign", "no-sign-in-this-chat"])
async def test_without_a_sign_for_typing_the_message_gets_a_reaction_until_the_turn_has_ended(
    start_gateway: StartGateway, typing_seconds: float | None
) -> None:
    class ReactingAdapter(LoopbackAdapter):
        async def show_typing(self, address: Address) -> None:
            raise SendRejected("Not in this chat.")

        async def react(self, address: Address, message_id: str, emoji: str) -> None:
            history.append(f"{message_id} {emoji}")

    capabilities = Capabilities(typing_seconds=typing_seconds, can_react=True)
    history: list[str] = []
    loopback, steps = ReactingAdapter(capabilities=capabilities), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello", message_id="m1")
    await wait_until(lambda: history == ["m1 👀"])
    steps.say("One")
    steps.finish()
    await wait_for_delivery(gateway, receipt.session_id)
    await wait_until(lambda: history == ["m1 👀", "m1 "])


async def test_a_reaction_that_is_still_on_its_way_at_the_end_of_the_turn_is_taken_back_after_it(
    start_gateway: StartGateway,
) -> None:
    history: list[str] = []
    is_asked, is_answered = asyncio.Event(), asyncio.Event()

    class SlowAdapter(LoopbackAdapter):
        async def react(self, address: Address, message_id: str, emoji: str) -> None:
            if emoji:
                is_asked.set()
                await is_answered.wait()
            history.append(emoji)

    loopback, steps = SlowAdapter(capabilities=Capabilities(can_react=True)), SteppingAgent()
    gateway = await start_gateway(steps.agent, loopback=loopback)
    receipt = await loopback.say("hello", message_id="m1")
    await asyncio.wait_for(is_asked.wait(), 10)
    steps.say("One")
    steps.finish()
    await wait_for_turn(gateway, receipt.turn_id)
    assert history == []
    is_answered.set()
    await wait_for_delivery(gateway, receipt.session_id)
    await wait_until(lambda: history == ["👀", ""])


async def test_taking_a_reaction_back_is_tried_again_after_each_pause(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.delivery.previews.REACTION_RETRY_SECONDS", (0.0, 0.0))
    history: list[str] = []

    class RefusingAdapter(LoopbackAdapter):
        async def react(self, address: Address, message_id: str, emoji: str) -> None:
            history.append(emoji)
            if history.count("") in {1, 2}:
                raise SendRetryable("Not now.")

    loopback, steps = RefusingAdapter(capabilities=Capabilities(can_react=True)), SteppingAgent()
    await start_gateway(steps.agent, loopback=loopback)
    await loopback.say("hello", message_id="m1")
    await wait_until(lambda: history == ["👀"])
    steps.say("One")
    steps.finish()
    await wait_until(lambda: history == ["👀", "", "", ""])


@pytest.mark.both_engines
async def test_the_process_that_runs_the_account_shows_the_answer_of_another_process(
    start_gateway: StartGateway,
) -> None:
    loopback, steps = LoopbackAdapter(capabilities=replace(EDITS, typing_seconds=0.1)), SteppingAgent()
    connected = await start_gateway(loopback=loopback)
    await connected.turn_worker.stop()
    working = await start_gateway(steps.agent)
    receipt = await loopback.say("hello")
    steps.say("One")
    await wait_for_body(loopback, "One")
    assert loopback.typing
    steps.say(" two.")
    steps.finish()
    await wait_for_delivery(working, receipt.session_id)
    assert (list_bodies(loopback), len(loopback.sent)) == (["One two."], 1)


# -- the text ------------------------------------------------------------------------------------------------------


def text(value: str) -> Piece:
    return Piece(PieceKind.TEXT, value)


def call(name: str) -> Piece:
    return Piece(PieceKind.CALL, call_id="c", name=name)


RESULT = Piece(PieceKind.RESULT, "found", call_id="c")
REASONING = Piece(PieceKind.REASONING, "thinking")


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], ""),
        ([REASONING], ""),
        ([text("  ")], ""),
        ([REASONING, text("Hello")], "Hello"),
        ([call("look")], "*Using look…*"),
        ([text("A"), call("look"), RESULT], "A\n\n*Using look…*"),
        ([text("A"), call("look"), RESULT, text("B")], "A\n\nB"),
        ([text("A"), call("look"), call("go"), RESULT], "A\n\n*Using go…*"),
        ([text("x" * 30)], "…\n\n" + "x" * 20),
        ([text("y" * 30 + "\nlast line is kept")], "…\n\nlast line is kept"),
    ],
)
def test_the_text_of_a_growing_message(pieces: list[Piece], expected: str) -> None:
    assert build_preview_text(pieces, 20) == expected
