"""Which place the agent means with a delivery target."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.domain.context import SessionContext, build_session_context, build_session_context_prompt
from palaver.domain.errors import InvalidInput
from palaver.domain.gateway_config import GatewayConfig, HomeChannel
from palaver.domain.redact import Redactor
from palaver.domain.source import Platform, SessionSource
from palaver.domain.target_resolution import resolve_target
from palaver.domain.targets import DeliveryTarget

REDACTOR = Redactor(b"a secret of this installation...")
PHONE = "491701234567@s.whatsapp.net"
CONFIG = GatewayConfig(
    connected_platforms=(Platform.TELEGRAM, Platform.MATRIX, Platform.DISCORD, Platform.WHATSAPP),
    home_channels={
        Platform.WHATSAPP: HomeChannel(Platform.WHATSAPP, PHONE, "Phone"),
        Platform.TELEGRAM: HomeChannel(Platform.TELEGRAM, "-100777", "Family", "7"),
        Platform.MATRIX: HomeChannel(Platform.MATRIX, "!ops:example.org", "Ops"),
    },
)
DM = SessionSource("telegram", "4242", user_id="4242", user_name="Ada")


def lines_about(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"- {word}")]


def make_context(source: SessionSource = DM, config: GatewayConfig = CONFIG) -> SessionContext:
    return build_session_context(source, config)


ALL_CONNECTED = GatewayConfig(
    connected_platforms=tuple(map(Platform, ["telegram", "discord", "slack", "whatsapp", "signal", "matrix", "my_irc"]))
)


@pytest.mark.parametrize("target", ["origin", " Origin ", '"origin"', "`origin`"])
def test_origin_is_the_chat_of_the_request(target: str) -> None:
    source = SessionSource("slack", "C1", chat_type="channel", thread_id="17.5")
    assert resolve_target(target, make_context(source)) == DeliveryTarget("origin", Platform.SLACK, "C1", "17.5")


@pytest.mark.parametrize("source", [DM, SessionSource.local_cli()])
def test_local_is_this_machine(source: SessionSource) -> None:
    assert resolve_target("local", make_context(source)) == DeliveryTarget("local", Platform.LOCAL)


def test_the_origin_of_the_terminal_is_local() -> None:
    context = make_context(SessionSource.local_cli())
    assert resolve_target("origin", context) == resolve_target("local", context)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("telegram", DeliveryTarget("chat", Platform.TELEGRAM, "-100777", "7")),
        ("WhatsApp", DeliveryTarget("chat", Platform.WHATSAPP, PHONE)),
        ("matrix", DeliveryTarget("chat", Platform.MATRIX, "!ops:example.org")),
    ],
)
def test_a_platform_name_is_its_home_channel(name: str, target: DeliveryTarget) -> None:
    assert resolve_target(name, make_context()) == target


@pytest.mark.parametrize(
    ("target", "platform", "chat", "thread"),
    [
        ("telegram:-100123", "telegram", "-100123", None),
        ("telegram:-100123:17", "telegram", "-100123", "17"),
        ("Telegram:@channel", "telegram", "@channel", None),
        ("slack:C1:1712345678.123400", "slack", "C1", "1712345678.123400"),
        ("discord:123:456", "discord", "123", "456"),
        ("matrix:!abc:server.org", "matrix", "!abc:server.org", None),
        ("matrix:!abc:server.org:$root", "matrix", "!abc:server.org", "$root"),
        ("matrix:!abc:server.org:thread-1", "matrix", "!abc:server.org", "thread-1"),
        ("matrix:!abc:server.org:8448", "matrix", "!abc:server.org:8448", None),
        ("matrix:!abc:server.org:8448:$root", "matrix", "!abc:server.org:8448", "$root"),
        ("matrix:!abc:server.org:$old:server.org", "matrix", "!abc:server.org", "$old:server.org"),
        ("matrix:!abc:[2001:db8::1]:8448:$root", "matrix", "!abc:[2001:db8::1]:8448", "$root"),
        ("matrix:!roomwithoutserver", "matrix", "!roomwithoutserver", None),
        ("matrix:!roomwithoutserver:$root", "matrix", "!roomwithoutserver", "$root"),
        ("matrix:#alias:server.org", "matrix", "#alias:server.org", None),
        ("signal:group:X+/y==", "signal", "group:X+/y==", None),
        ("signal:group:X==:9", "signal", "group:X==", "9"),
        ("signal:+491701234567", "signal", "+491701234567", None),
        ("whatsapp:123-456@g.us", "whatsapp", "123-456@g.us", None),
        ("whatsapp:49170:5@s.whatsapp.net", "whatsapp", "49170:5@s.whatsapp.net", None),
        ("whatsapp:491701234567", "whatsapp", "491701234567", None),
        ("my_irc:#chan:t:x", "my_irc", "#chan", "t:x"),
    ],
)
def test_a_target_names_platform_chat_and_thread(target: str, platform: str, chat: str, thread: str | None) -> None:
    expected = DeliveryTarget("chat", Platform(platform), chat, thread)
    for redactor in (None, REDACTOR):
        assert resolve_target(target, make_context(config=ALL_CONNECTED), redactor) == expected


@pytest.mark.parametrize(
    ("target", "chat", "thread"),
    [
        ("my_irc:net%3A#chan", "net:#chan", None),
        ("my_irc:net%3A#chan:9", "net:#chan", "9"),
        ("my_irc:net:#chan", "net", "#chan"),
        ("my_irc:a%3Ab%3Ac:d", "a:b:c", "d"),
        ("MY_IRC@work:a", "a", None),
    ],
)
def test_colons_in_ids_of_other_platforms_are_encoded(target: str, chat: str, thread: str | None) -> None:
    resolved = resolve_target(target, make_context(config=ALL_CONNECTED))
    assert (resolved.kind, resolved.platform, resolved.chat_id, resolved.thread_id) == ("chat", "my_irc", chat, thread)
    assert resolved.account == ("work" if "@" in target else "")


@pytest.mark.parametrize(
    ("target", "chat", "thread"),
    [
        (REDACTOR.redact_chat("telegram", "4242"), "4242", None),
        (f"{REDACTOR.redact_chat('telegram', '4242')}:17", "4242", "17"),
        (REDACTOR.redact_chat("telegram", "-100777"), "-100777", None),
        (f"{REDACTOR.redact_chat('telegram', '-100777')}:7", "-100777", "7"),
        (REDACTOR.redact_chat("whatsapp", PHONE), PHONE, None),
    ],
)
def test_a_hidden_id_resolves_to_the_real_one(target: str, chat: str, thread: str | None) -> None:
    resolved = resolve_target(target, make_context(), REDACTOR)
    assert (resolved.kind, resolved.chat_id, resolved.thread_id) == ("chat", chat, thread)


def test_an_unknown_hidden_id_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="unknown hidden id"):
        resolve_target("telegram:0123456789ab", make_context(), REDACTOR)
    other_installation = Redactor(b"the secret of another installation")
    with pytest.raises(InvalidInput, match="unknown hidden id"):
        resolve_target(other_installation.redact_chat("whatsapp", PHONE), make_context(), REDACTOR)


@pytest.mark.parametrize(
    ("target", "problem", "alternatives"),
    [
        ("teams", '"teams"', "origin, local, matrix, telegram, whatsapp"),
        ("teams:123", '"teams"', "discord, matrix, telegram, whatsapp"),
        ("slack:C1", '"slack"', "discord, matrix, telegram, whatsapp"),
        ("discord", "Discord has no home channel", "origin, local, matrix, telegram, whatsapp"),
        ("", '""', "origin"),
        (":x", '""', "origin"),
        ("Family room", '"Family room"', "origin"),
        ("local:notes", '"local"', "origin"),
        ("telegram:", "names no chat", "origin"),
        ("telegram::7", "names no chat", "origin"),
        ("telegram:1:", "names no chat", "origin"),
    ],
)
def test_an_invalid_target_is_rejected_with_the_valid_ones(target: str, problem: str, alternatives: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        resolve_target(target, make_context())
    assert problem in str(caught.value)
    assert alternatives in str(caught.value)


def test_without_platforms_the_terminal_reaches_only_this_machine() -> None:
    with pytest.raises(InvalidInput, match=r"valid targets: origin, local$"):
        resolve_target("telegram:1", make_context(SessionSource.local_cli(), GatewayConfig()))


def test_an_ambiguous_target_is_rejected() -> None:
    source = SessionSource("my_irc", "a" * 300 + "x", chat_type="channel")
    home = HomeChannel(Platform("my_irc"), "a" * 300 + "y")
    context = make_context(source, GatewayConfig(home_channels={home.platform: home}))
    [line] = lines_about(build_session_context_prompt(context), "Source")
    with pytest.raises(InvalidInput, match="matches two chats"):
        resolve_target(line.partition(", target ")[2], context)


ids = st.one_of(st.text(min_size=1, max_size=20), st.text(st.characters(), min_size=230, max_size=260))


@given(ids, st.none() | ids, st.sampled_from(["telegram", "matrix", "signal", "my_irc"]), st.booleans())
def test_every_target_in_the_prompt_can_be_used(chat: str, thread: str | None, platform: str, hidden: bool) -> None:
    source = SessionSource(platform, chat, thread_id=thread, chat_type="group")
    context = build_session_context(source, GatewayConfig())
    text = build_session_context_prompt(context, redact_pii=hidden, redactor=REDACTOR)
    [line] = lines_about(text, "Source")
    quoted_target = line.partition(", target ")[2]
    expected = DeliveryTarget("chat", Platform(platform), chat, thread)
    assert resolve_target(quoted_target, context, REDACTOR) == expected
    assert resolve_target(json.loads(quoted_target), context, REDACTOR) == expected
