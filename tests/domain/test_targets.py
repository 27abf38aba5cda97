"""The grammar of delivery targets."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.domain.delivery import Address
from palaver.domain.errors import InvalidInput
from palaver.domain.source import Platform
from palaver.domain.targets import DeliveryTarget, format_target, parse_target


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
