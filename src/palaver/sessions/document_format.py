"""The formats in which a conversation is one file."""

from __future__ import annotations

from enum import StrEnum


class DocumentFormat(StrEnum):
    """A format in which a conversation is one file."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSONL = "jsonl"  # the complete log, which can be imported again
    JSON = "json"  # the complete log as one object

    @property
    def suffix(self) -> str:
        return "md" if self is DocumentFormat.MARKDOWN else self.value

    @property
    def media_type(self) -> str:
        media_types = {
            DocumentFormat.MARKDOWN: "text/markdown; charset=utf-8",
            DocumentFormat.HTML: "text/html; charset=utf-8",
            DocumentFormat.JSONL: "application/jsonl",
            DocumentFormat.JSON: "application/json",
        }
        return media_types[self]
