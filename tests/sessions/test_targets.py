"""The grammar of delivery targets."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from palaver.core.errors import InvalidInput
from palaver.core.source import Platform
from palaver.sessions.delivery import Address
from palaver.sessions.targets import DeliveryTarget, format_target, parse_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("origin", DeliveryTarget("origin")),
        (" `Local` ", DeliveryTarget("local")),
        ("Telegram", DeliveryTarget("home", Platform.TELEGRAM)),
        ("telegram@work", DeliveryTarget("home", Platform.TELEGRAM, account="work")),
        ("telegram@work:-100:7", DeliveryTarget("chat", Platform.TELEGRAM, "-100", "7", "work")),
        ("matrix:!abc:server.org", DeliveryTarget("chat", Platform.MATRIX, "!abc:server.org")),
        ("matrix:!abc:server.org:$thread", DeliveryTarget("chat", Platform.MATRIX, "!abc:server.org", "$thread")),
        ("signal:group:X==", DeliveryTarget("chat", Platform.SIGNAL, "group:X==")),
        ("my_irc:net%3A#chan:a%25b", DeliveryTarget("chat", Platform("my_irc"), "net:#chan", "a%b")),
        ("email:ann%40example.org", DeliveryTarget("chat", Platform("email"), "ann@example.org")),
    ],
)
def test_a_target_is_parsed(text: str, target: DeliveryTarget) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize("text", ["", ":x", "a b", "telegram:", "telegram::7", "telegram:1:", "local:notes", "@x:1"])
def test_what_is_no_target_is_refused_with_the_forms_that_are(text: str) -> None:
    with pytest.raises(InvalidInput, match="platform:chat"):
        parse_target(text)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (Address(Platform.MATRIX, "!abc:server.org", "$root"), "matrix:!abc:server.org:$root"),
        (Address(Platform.SIGNAL, "group:X+/y=="), "signal:group:X+/y=="),
        (Address(Platform.TELEGRAM, "-100123", "17", "work"), "telegram@work:-100123:17"),
        (Address(Platform("my_irc"), "net:#chan"), "my_irc:net%3A#chan"),
    ],
)
def test_ids_are_written_as_the_platform_writes_them_where_that_is_unambiguous(address: Address, text: str) -> None:
    assert format_target(address) == text


ids = st.text(min_size=1, max_size=30) | st.text("!#@:%$[]a1.= \"'`\n", min_size=1, max_size=12)


@given(st.sampled_from(["telegram", "matrix", "signal", "whatsapp", "my_irc"]), ids, st.none() | ids, st.just("") | ids)
@example("matrix", "!room", "server.org", "")
@example("matrix", "!room:server", "8448", "")
@example("signal", "group", "X==", "")
def test_every_address_is_parsed_back_from_its_target(
    platform: str, chat: str, thread: str | None, account: str
) -> None:
    address = Address(Platform(platform), chat, thread, account)
    target = parse_target(format_target(address))
    assert Address(target.platform, target.chat_id, target.thread_id, target.account) == address


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
    assert parse_target(target) == DeliveryTarget("chat", Platform(platform), chat, thread)


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
    resolved = parse_target(target)
    assert (resolved.kind, resolved.platform, resolved.chat_id, resolved.thread_id) == ("chat", "my_irc", chat, thread)
    assert resolved.account == ("work" if "@" in target else "")
