"""The composition root: the one place that knows which concrete classes are in use.

Entry points load it when a command needs the store, not before; edges are handed what is made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.services.store import SessionStore

if TYPE_CHECKING:
    from palaver.config import Settings


def open_store(settings: Settings) -> SessionStore:
    """The store that the settings name, opened; made when it is not there yet."""
    return SessionStore.open(settings.database_url, config=settings.gateway)
