"""The addresses that people may enter: everything else would be an error in the middle of a request."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import example, given, strategies as st

from palaver.core.http_url import MAX_URL_CHARS, is_host_name, is_http_url


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.org/v1",
        "http://localhost:11434/v1",
        "HTTPS://Example.org",
        "http://127.0.0.1:9/",
        "http://[::1]:8080/v1",
        "http://[fe80::1%25eth0]/",
        "http://user:password@example.org:80/a?b=c#d",
        "https://bücher.example/",
        "http://my_server./",
        "http://server",
    ],
)
def test_addresses_of_servers_are_accepted(url: str) -> None:
    assert is_http_url(url)
    httpx2.URL(url)


@pytest.mark.parametrize(
    "url",
    [
        pytest.param(None, id="nothing"),
        pytest.param("", id="empty"),
        pytest.param("example.org", id="no scheme"),
        pytest.param("h\x1d", id="a control character"),
        pytest.param("http://a\nb/", id="a line break"),
        pytest.param("http://a b/", id="a space"),
        pytest.param("http://a\\b/", id="a backslash"),
        pytest.param("http://a/\ud800", id="half a character"),
        pytest.param("ftp://example.org", id="another scheme"),
        pytest.param("http://", id="no host"),
        pytest.param("http://:80/", id="a port alone"),
        pytest.param("http://a:0/", id="port 0"),
        pytest.param("http://a:65536/", id="a port that is too large"),
        pytest.param("http://a:b/", id="a port that is not a number"),
        pytest.param("http://[::1", id="an open bracket"),
        pytest.param("http://[::1]x/", id="letters after an IPv6 address"),
        pytest.param("http://[v1.x]/", id="no IPv6 address in brackets"),
        pytest.param("http://[1.2.3.4]/", id="an IPv4 address in brackets"),
        pytest.param("http://999.1.1.1/", id="no IPv4 address"),
        pytest.param("http://a..b/", id="an empty label"),
        pytest.param("http://./", id="a dot alone"),
        pytest.param(f"http://{'a' * 64}.org/", id="a label that is too long"),
        pytest.param(f"http://{'ü' * 64}.org/", id="a label that is too long when it is encoded"),
        pytest.param(f"http://{'a.' * 130}org/", id="a host that is too long"),
        pytest.param(f"http://a/{'b' * MAX_URL_CHARS}", id="a URL that is too long"),
    ],
)
def test_what_is_not_the_address_of_a_server_is_refused(url: object) -> None:
    assert not is_http_url(url)


def test_other_schemes_are_accepted_where_they_are_named() -> None:
    assert is_http_url("socks5://127.0.0.1:1080", {"socks5"})
    assert not is_http_url("http://127.0.0.1:1080", {"socks5"})


def test_hosts_are_checked_by_the_same_rule() -> None:
    assert is_host_name("imap.example.org")
    assert not is_host_name("imap..example.org")


ADDRESS_TEXT = st.text(st.sampled_from("a1.:/[]@%#?-_~!*^|<>`{}\"'+,;=\t\n\x00\x1d\x7f \\"), max_size=24)


@given(ADDRESS_TEXT.map("http://".__add__) | ADDRESS_TEXT)
@example("http://a:/")
def test_an_http_client_takes_every_ascii_address_that_is_accepted(url: str) -> None:
    if is_http_url(url):
        assert httpx2.URL(url).host
