"""Checks of settings that several platforms have."""

from __future__ import annotations

from urllib.parse import urlsplit


def check_api_url(value: str, server: str, example: str) -> str:
    """Return the address of a platform's server without a slash at its end. Raises ValueError with words for people."""
    if not _is_http_url(value):
        raise ValueError(f"{value!r} is not the address of {server}; use one such as {example}.")
    return value.rstrip("/")


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, or too large
        return False
    return parts.scheme in {"http", "https"} and has_host and not parts.query and not parts.fragment
