"""The rules for names, passwords, tokens, addresses and devices."""

from __future__ import annotations

import pytest

from palaver.domain.account import (
    Scope,
    address_group,
    check_password,
    checked_scopes,
    clean_name,
    device_name,
    digest,
    is_loopback,
    name_key,
    new_secret,
)
from palaver.domain.errors import InvalidInput, InvalidName, NotAllowed, WeakPassword
from palaver.domain.person import Role


@pytest.mark.parametrize(
    ("given", "name"),
    [("Ada", "Ada"), ("  Grace \t Hopper\n", "Grace Hopper"), ("李\u200b雷", "李雷"), ("x" * 60, "x" * 60)],
)
def test_a_name_is_one_line_of_printable_text(given: str, name: str) -> None:
    assert clean_name(given) == name


@pytest.mark.parametrize("given", ["", "   ", "\u200b\u202e", "\n", "x" * 61, "x" * 5000])
def test_nothing_and_too_much_are_no_names(given: str) -> None:
    with pytest.raises(InvalidName, match="name: one line"):
        clean_name(given)


def test_names_that_look_alike_are_the_same() -> None:
    assert name_key("Zoë") == name_key(" ZOE\u0308 ") == name_key("zoë")
    assert name_key("Ada Lovelace") == name_key("ada  lovelace")
    assert name_key("Ada") != name_key("Adam")


@pytest.mark.parametrize(
    "password",
    [
        *("", "seven77", "password", "PassWord", "password2026!", "!!!letmein!!!", "12345678", "87654321", "qwertyui"),
        *("asdfghjkl", "abcdefgh", "abcd1234", "aaaaaaaaa", "abababab", "Ada Lovelace", "ada lovelace 1815", "x" * 257),
    ],
)
def test_a_password_that_is_short_or_among_the_first_to_be_tried_is_weak(password: str) -> None:
    with pytest.raises(WeakPassword, match="password: "):
        check_password(password, "Ada Lovelace")


@pytest.mark.parametrize(
    "password",
    [
        "kLw#92xq",
        "correct horse battery staple",
        "пароль который длинный",
        "my dog is 12 years old",
        "密码是很长的一句话吧",
    ],
)
def test_an_ordinary_good_password_is_taken(password: str) -> None:
    check_password(password, "Ada Lovelace")


def test_scopes_are_kept_once_and_in_one_order() -> None:
    assert checked_scopes(["chat", "read", "chat"], Role.MEMBER) == (Scope.READ, Scope.CHAT)
    assert checked_scopes(["admin"], Role.OWNER) == (Scope.ADMIN,)
    with pytest.raises(NotAllowed):
        checked_scopes(["admin"], Role.MEMBER)
    with pytest.raises(InvalidInput):
        checked_scopes([], Role.OWNER)


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_whole_ipv6_network_counts_as_one_address(address: str, group: str) -> None:
    assert address_group(address) == group


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LocalHost"])
def test_this_machine_alone_reaches_a_loopback_host(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org"])
def test_others_may_reach_every_other_host(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox, Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0"
            " Safari/537.36 Edg/140.0.0.0",
            "Edge, Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
            " Version/18.0 Mobile/15E148 Safari/604.1",
            "Safari, iPhone",
        ),
        (
            "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile"
            " Safari/537.36",
            "Chrome, Android",
        ),
        ("curl/8.9.1", "curl/8.9.1"),
        ("x" * 500, "x" * 40),
        ("\x1b[31m", "[31m"),
        ("", "Unknown device"),
    ],
)
def test_a_device_is_called_what_people_call_it(user_agent: str, name: str) -> None:
    assert device_name(user_agent) == name


def test_secrets_are_long_and_their_digests_tell_nothing() -> None:
    one, other = new_secret(), new_secret()
    assert one != other
    assert len(one) >= 43
    assert digest(one) != digest(other)
    assert one not in digest(one)
