"""Text that every engine can keep: no NUL, no half of a surrogate pair."""

from __future__ import annotations


def is_storable(text: str) -> bool:
    """Whether a text can be kept exactly as it is."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def storable(text: str) -> str:
    """The text with what cannot be kept replaced."""
    return text if is_storable(text) else text.replace("\0", " ").encode("utf-8", "replace").decode()
