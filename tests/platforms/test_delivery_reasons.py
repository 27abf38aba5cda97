"""Why a message was not delivered: what a platform says by itself is in the language of the reader, too."""

from __future__ import annotations

import pytest

from palaver.core.errors import DeliveryError, SendRejected, TargetUnreachable
from palaver.core.source import Platform
from palaver.core.texts import translate
from palaver.platforms.discord.outbound import build_channel_path
from palaver.platforms.signal.client import RpcError, make_delivery_error as make_signal_error
from palaver.platforms.slack.failures import SlackUnreachable, make_delivery_error as make_slack_error
from palaver.platforms.whatsapp_web.outbound import parse_address
from palaver.sessions.delivery import Address


@pytest.mark.parametrize("kind", ["IDENTITY_FAILURE", "UNREGISTERED_FAILURE", "INVALID_PRE_KEY_FAILURE"])
def test_what_signal_says_of_a_person_is_translated(kind: str) -> None:
    refusal = RpcError({"code": -1, "data": {"response": {"results": [{"type": kind}]}}})
    assert_is_translated(make_signal_error(refusal, "signal-cli -c {folder}"))


def test_an_outage_of_slack_is_translated() -> None:
    assert_is_translated(make_slack_error(SlackUnreachable("no route to {host}", may_have_arrived=False)))


def test_an_address_of_another_platform_is_refused_in_words_that_are_translated() -> None:
    with pytest.raises(SendRejected) as refused:
        build_channel_path(Address(Platform.DISCORD, "{x}"))
    assert_is_translated(refused.value)
    with pytest.raises(TargetUnreachable) as unreachable:
        parse_address(Address(Platform("whatsapp-web"), "{x} %s"))
    assert_is_translated(unreachable.value)
    assert "'{x} %s'" in translate(unreachable.value.text, "de")


def assert_is_translated(error: DeliveryError) -> None:
    assert translate(error.text, "de") != str(error)
