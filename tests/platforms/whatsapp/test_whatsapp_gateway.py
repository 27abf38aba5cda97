"""A whole gateway with a business number: nothing lost, nothing doubled, and people read only what is theirs."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import PalaverError
from palaver.core.source import Platform
from palaver.delivery.adapter import WebhookRequest
from palaver.delivery.model import AccountState
from palaver.platforms.whatsapp.client import PERSON_WAIT_SECONDS
from palaver.sessions.delivery import DeliveryState
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.platform_gateway import GatewayStarter, skip_retry_wait, wait_for_states

from .graph_server import (
    ADAS_BSUID,
    ADAS_NUMBER,
    BAD_GATEWAY,
    BENS_BSUID,
    BENS_NUMBER,
    LOSE_ANSWER,
    PAIR_RATE,
    WINDOW_CLOSED,
    GraphServer,
    make_message,
    make_webhook,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.gateway.gateway import Gateway

SENT, UNCERTAIN, FAILED = DeliveryState.SENT, DeliveryState.UNCERTAIN, DeliveryState.FAILED
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NEW_NUMBER, NEW_BSUID = "4917099999999", "DE.99999999"


@pytest.fixture
def starter(starter: GatewayStarter, server: GraphServer) -> GatewayStarter:
    """Starts gateways; the server calls the newest one."""

    async def connect(gateway: Gateway) -> None:
        async def send(body: bytes, headers: Mapping[str, str]) -> int:
            request = WebhookRequest(method="POST", headers=headers, query={}, body=body)
            try:
                return (await gateway.accounts.handle_webhook("whatsapp", "", request)).status
            except PalaverError:
                return 503

        server.send_webhook = send

    starter.after_start = connect
    return starter


async def test_two_people_have_two_conversations(server: GraphServer, starter: GatewayStarter) -> None:
    """Each id of a person leads only to their own conversation."""
    agent = ScriptedAgent(lambda request: " / ".join(str(each["content"]) for each in request.messages))
    gateway, _ = await starter.start(agent=agent)
    server.push_text("secret of Ada", number=ADAS_NUMBER, bsuid=ADAS_BSUID)
    server.push_text("secret of Ben", number=BENS_NUMBER, bsuid=BENS_BSUID)
    await wait_for_states(gateway, SENT, SENT)
    server.push_text("without my number", number=None, bsuid=ADAS_BSUID)
    server.push_text("without a user name", number=BENS_NUMBER)
    deliveries = await wait_for_states(gateway, *[SENT] * 4)
    assert len({each.session_id for each in deliveries}) == 2
    adas, bens = server.list_texts(ADAS_NUMBER), server.list_texts(BENS_NUMBER)
    assert (len(adas), len(bens), server.list_texts(ADAS_BSUID)) == (2, 2, [])
    assert "secret of Ada" in adas[1]
    assert "without my number" in adas[1]
    assert not any("Ben" in text for text in adas)
    assert not any("Ada" in text for text in bens)


async def test_the_new_holder_of_a_number_sees_nothing_of_the_old_one(
    server: GraphServer, starter: GatewayStarter
) -> None:
    agent = ScriptedAgent(lambda request: " / ".join(str(each["content"]) for each in request.messages))
    gateway, _ = await starter.start(agent=agent)
    server.push_text("secret of Ada", number=ADAS_NUMBER, bsuid=ADAS_BSUID)
    await wait_for_states(gateway, SENT)
    server.push_text("what do you know?", number=ADAS_NUMBER, bsuid=BENS_BSUID)
    await wait_for_states(gateway, SENT, SENT)
    assert "secret of Ada" not in server.list_texts(ADAS_NUMBER)[-1]
    server.push_text("and me?", number=None, bsuid=ADAS_BSUID)
    await wait_for_states(gateway, SENT, SENT, SENT)
    assert "secret of Ada" in server.list_texts(ADAS_BSUID)[-1]


async def test_a_conversation_goes_on_under_a_new_number(server: GraphServer, starter: GatewayStarter) -> None:
    gateway, _ = await starter.start()
    server.push_text("hello", number=ADAS_NUMBER, bsuid=ADAS_BSUID)
    await wait_for_states(gateway, SENT)
    system = {
        "body": "",
        "type": "user_changed_number",
        "wa_id": NEW_NUMBER,
        "user_id": NEW_BSUID,
        "previous_user_id": ADAS_BSUID,
    }
    server.push(make_webhook(make_message("system", system, message_id="wamid.moved")))
    server.push_text("my new number", number=NEW_NUMBER, bsuid=NEW_BSUID)
    deliveries = await wait_for_states(gateway, SENT, SENT)
    assert len({each.session_id for each in deliveries}) == 1
    assert server.list_texts(NEW_NUMBER) == ["You said: my new number"]


async def test_a_lost_answer_is_confirmed_by_its_status(server: GraphServer, starter: GatewayStarter) -> None:
    server.fail("messages", LOSE_ANSWER)
    gateway, _ = await starter.start()
    server.push_text("hello")
    await wait_for_states(gateway, SENT)
    assert server.list_texts() == ["You said: hello"]


async def test_without_a_status_a_lost_answer_stays_uncertain_and_is_not_sent_again(
    server: GraphServer, starter: GatewayStarter
) -> None:
    server.sends_statuses = False
    server.fail("messages", BAD_GATEWAY)
    gateway, _ = await starter.start()
    server.push_text("hello")
    await wait_for_states(gateway, UNCERTAIN)
    server.push_text("still there?")
    await wait_for_states(gateway, UNCERTAIN, SENT)
    assert server.list_texts() == ["You said: still there?"]


async def test_a_message_that_fails_after_it_was_taken_is_reported(
    server: GraphServer, starter: GatewayStarter
) -> None:
    server.later_failures[ADAS_NUMBER] = 131026
    gateway, _ = await starter.start()
    server.push_text("hello")
    [failed] = await wait_for_states(gateway, FAILED)
    assert failed.error is not None
    assert "can't deliver to this person" in failed.error
    server.later_failures.clear()
    server.push_text("I am back")  # who writes can be reached
    await wait_for_states(gateway, FAILED, SENT)


async def test_the_closed_window_is_told_and_opens_with_the_next_message(
    server: GraphServer, starter: GatewayStarter
) -> None:
    server.fail("messages", WINDOW_CLOSED)
    gateway, _ = await starter.start()
    server.push_text("hello")
    [failed] = await wait_for_states(gateway, FAILED)
    assert "24 hours" in str(failed.error)
    server.push_text("hello again")
    await wait_for_states(gateway, FAILED, SENT)


async def test_a_pair_rate_limit_in_the_middle_of_the_parts_loses_and_doubles_nothing(
    server: GraphServer, starter: GatewayStarter
) -> None:
    answer = "\n\n".join(f"Paragraph {number} " + "word " * 500 for number in range(5))
    server.fail("messages", None, PAIR_RATE)
    gateway, _ = await starter.start(agent=ScriptedAgent(answer))
    server.push_text("long please")
    await skip_retry_wait(gateway, PERSON_WAIT_SECONDS)
    await wait_for_states(gateway, SENT)
    texts = server.list_texts()
    assert len(texts) <= 5  # in few parts: there is one message in six seconds
    assert "\n\n".join(texts).split() == answer.split()


async def test_a_picture_is_seen_and_the_message_is_marked_as_read(
    server: GraphServer, starter: GatewayStarter
) -> None:
    agent = ScriptedAgent("I see.")
    media_id = server.add_media(PIXEL, "image/png")
    gateway, _ = await starter.start(agent=agent)
    image = {"id": media_id, "mime_type": "image/png", "sha256": "x", "caption": "What is this?"}
    server.push(make_webhook(make_message("image", image, message_id="wamid.picture")))
    await wait_for_states(gateway, SENT)
    [request] = agent.requests
    asked = json.dumps(request.messages, default=str)
    assert "What is this?" in asked
    assert base64.b64encode(PIXEL).decode() in asked
    assert server.read_ids == ["wamid.picture"]


async def test_an_expired_token_is_refused_until_it_is_fixed(server: GraphServer, starter: GatewayStarter) -> None:
    server.is_revoked = True
    gateway, _ = await starter.start()
    runner = gateway.accounts._runners[Platform.WHATSAPP, ""]
    await wait_until(lambda: runner.status.state is AccountState.REFUSED)
    assert "system user" in str(runner.status.error)
    server.push_text("hello")
    server.is_revoked = False
    await wait_for_states(gateway, SENT)
