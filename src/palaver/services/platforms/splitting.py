"""Splits a text into messages that are short enough for a platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palaver.domain.capabilities import Capabilities


def split_markdown(markdown: str, capabilities: Capabilities) -> list[str]:
    """Split a text at its paragraphs, code fences and tables."""
    return [markdown]
