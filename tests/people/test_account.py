"""The rules for names, passwords, token scopes, rate limits and device names."""

from __future__ import annotations

import pytest

from palaver.core.errors import InvalidInput, InvalidName, NotAllowed, WeakPassword
from palaver.people.model import (
    Role,
    Scope,
    check_password,
    clean_person_name,
    describe_device,
    generate_secret,
    group_ip_address,
    hash_secret,
    is_loopback,
    normalize_name,
    parse_scopes,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [("Ada", "Ada"), ("  Grace \t Hopper\n", "Grace Hopper"), ("李\u200b雷", "李雷"), ("x" * 60, "x" * 60)],
)
def test_a_name_is_cleaned_to_one_line_of_printable_text(text: str, name: str) -> None:
    assert clean_person_name(text) == name


@pytest.mark.parametrize("text", ["", "   ", "\u200b\u202e", "\n", "x" * 61, "x" * 5000])
def test_an_empty_or_too_long_name_is_rejected(text: str) -> None:
    with pytest.raises(InvalidName, match="one line of 1 to 60 characters"):
        clean_person_name(text)


def test_names_that_differ_only_in_case_spaces_or_encoding_are_equal() -> None:
    assert normalize_name("Zoë") == normalize_name(" ZOE\u0308 ") == normalize_name("zoë")
    assert normalize_name("Ada Lovelace") == normalize_name("ada  lovelace")
    assert normalize_name("Ada") != normalize_name("Adam")


@pytest.mark.parametrize(
    "password",
    [
        *("", "seven77", "password", "PassWord", "password2026!", "!!!letmein!!!", "12345678", "87654321", "qwertyui"),
        *("asdfghjkl", "abcdefgh", "abcd1234", "aaaaaaaaa", "abababab", "Ada Lovelace", "ada lovelace 1815", "x" * 257),
    ],
)
def test_a_short_or_common_password_is_rejected(password: str) -> None:
    with pytest.raises(WeakPassword, match=r"characters|too common"):
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
def test_a_good_password_is_accepted(password: str) -> None:
    check_password(password, "Ada Lovelace")


def test_scopes_are_deduplicated_and_sorted_and_admin_is_for_owners() -> None:
    assert parse_scopes(["chat", "read", "chat"], Role.MEMBER) == (Scope.READ, Scope.CHAT)
    assert parse_scopes(["admin"], Role.OWNER) == (Scope.ADMIN,)
    with pytest.raises(NotAllowed):
        parse_scopes(["admin"], Role.MEMBER)
    with pytest.raises(InvalidInput):
        parse_scopes([], Role.OWNER)


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
def test_all_addresses_of_an_ipv6_network_share_one_rate_limit(address: str, group: str) -> None:
    assert group_ip_address(address) == group


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LocalHost"])
def test_a_loopback_host_is_recognized(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org"])
def test_any_other_host_is_not_loopback(host: str) -> None:
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
def test_a_device_is_named_after_its_browser_and_system(user_agent: str, name: str) -> None:
    assert describe_device(user_agent) == name


def test_secrets_are_long_and_their_hashes_do_not_contain_them() -> None:
    one, other = generate_secret(), generate_secret()
    assert one != other
    assert len(one) >= 43
    assert hash_secret(one) != hash_secret(other)
    assert one not in hash_secret(one)
