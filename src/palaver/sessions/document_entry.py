"""One entry of an exported document: an event, and which version of a message it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from palaver.sessions.events import Event
    from palaver.sessions.version import VersionInfo


class DocumentEntry(NamedTuple):
    """A visible event of a conversation."""

    event: Event
    version: VersionInfo | None = None  # of a message that has other versions, which are not in the document
