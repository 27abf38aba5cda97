"""Text that every database engine can store: without NUL and unpaired surrogates."""

from __future__ import annotations


def is_storable(text: str) -> bool:
    """Whether a text can be stored unchanged."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def make_storable(text: str) -> str:
    """Return the text with everything that cannot be stored replaced."""
    return text if is_storable(text) else text.replace("\0", " ").encode("utf-8", "replace").decode()
