"""Which chat the agent means when it repeats a target that it was shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from palaver.core.errors import InvalidInput
from palaver.core.source import Platform, SessionSource
from palaver.sessions.context import Redactor, build_session_context, build_session_context_prompt
from palaver.sessions.gateway_config import GatewayConfig, HomeChannel
from palaver.sessions.target_resolution import find_hidden_chat, find_shown_place, is_hidden_chat
from palaver.sessions.targets import parse_target

REDACTOR = Redactor(b"a secret of this installation...")
PHONE = "491701234567@s.whatsapp.net"
DM = SessionSource("telegram", "4242", user_id="4242", user_name="Ada")
HOME = HomeChannel(Platform.TELEGRAM, "-100777", "Family", "7")
WHATSAPP_HOME = HomeChannel(Platform.WHATSAPP, PHONE, "Phone")
PLACES: list[SessionSource | HomeChannel] = [DM, HOME, WHATSAPP_HOME]


@pytest.mark.parametrize(
    ("target", "place"),
    [
        (REDACTOR.redact_chat("telegram", "4242"), DM),
        (f"{REDACTOR.redact_chat('telegram', '4242')}:17", DM),
        (REDACTOR.redact_chat("telegram", "-100777"), HOME),
        (REDACTOR.redact_chat("whatsapp", PHONE), WHATSAPP_HOME),
    ],
)
def test_a_hidden_id_leads_to_its_chat(target: str, place: SessionSource) -> None:
    assert find_hidden_chat(parse_target(target), PLACES, REDACTOR) is place


@pytest.mark.parametrize(
    "target", ["telegram", "telegram:4242", "telegram:0123456789ab", "telegram:" + "\u0660" * 12, "whatsapp:ABC"]
)
def test_a_target_without_a_hidden_id_leads_to_no_chat(target: str) -> None:
    assert find_hidden_chat(parse_target(target), PLACES, REDACTOR) is None


def test_only_this_installation_can_reveal_its_hidden_ids() -> None:
    other_installation = Redactor(b"the secret of another installation")
    foreign = parse_target(other_installation.redact_chat("whatsapp", PHONE))
    assert find_hidden_chat(foreign, PLACES, REDACTOR) is None
    assert is_hidden_chat(foreign, REDACTOR)
    assert not is_hidden_chat(foreign, None)


def test_twelve_digits_may_be_a_real_id_and_ids_of_discord_are_never_hidden() -> None:
    assert not is_hidden_chat(parse_target("telegram:123456789012"), REDACTOR)
    assert not is_hidden_chat(parse_target("discord:0123456789ab"), REDACTOR)


def test_two_chats_that_are_shown_alike_are_refused() -> None:
    places = [SessionSource("my_irc", "a" * 300 + ending, chat_type="channel") for ending in "xy"]
    context = build_session_context(places[0], GatewayConfig())
    shown = find_shown_target(build_session_context_prompt(context))
    with pytest.raises(InvalidInput, match="matches two chats"):
        find_shown_place(shown, places, None)


def find_shown_target(prompt: str) -> str:
    [line] = [line for line in prompt.splitlines() if line.startswith("- Source")]
    return line.partition(", target ")[2]


ids = st.one_of(st.text(min_size=1, max_size=20), st.text(st.characters(), min_size=230, max_size=260))


@given(ids, st.none() | ids, st.sampled_from(["telegram", "matrix", "signal", "my_irc"]), st.booleans())
def test_every_target_in_the_prompt_can_be_used(chat: str, thread: str | None, platform: str, hidden: bool) -> None:
    source = SessionSource(platform, chat, thread_id=thread, chat_type="group")
    context = build_session_context(source, GatewayConfig())
    shown = find_shown_target(build_session_context_prompt(context, redact_pii=hidden, redactor=REDACTOR))
    for written in (shown, json.loads(shown)):
        assert find_shown_place(written, [DM, source], REDACTOR) == source
