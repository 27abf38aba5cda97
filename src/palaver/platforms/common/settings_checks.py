"""Checks of settings that several platforms have."""

from __future__ import annotations

from urllib.parse import urlsplit

from palaver.core.http_url import is_http_url


def check_api_url(value: str, server: str, example: str) -> str:
    """Return the address of a platform's server without a slash at its end. Raises ValueError with words for people."""
    if not is_http_url(value) or urlsplit(value).query or urlsplit(value).fragment:
        raise ValueError(f"{value!r} is not the address of {server}; use one such as {example}.")
    return value.rstrip("/")
