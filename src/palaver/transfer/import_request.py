"""For whom an import runs, what it may change, and what it uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from palaver.sessions.gateway_config import GatewayConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.media.attachments import Attachments
    from palaver.people.model import Person
    from palaver.sessions.store import SessionStore
    from palaver.transfer.imported import ImportReader
    from palaver.transfer.report import ImportReport

MAX_PERSONAL_CONVERSATIONS: Final = 50_000  # in one import by a person for themselves
MAX_PERSONAL_MESSAGES: Final = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What the configuration knows, and how much may come in."""

    profiles: frozenset[str] = frozenset()  # names in config.yaml
    personalities: frozenset[str] = frozenset()
    max_conversations: int | None = None
    max_messages: int | None = None


@dataclass(slots=True, kw_only=True)
class ImportRun:
    """One import while it runs."""

    store: SessionStore
    attachments: Attachments | None
    reader: ImportReader
    person: Person  # conversations without a source belong to them
    # The operator's import: the people, chats and jobs that the files name come in. Otherwise everything belongs to
    # `person`, and the files change nothing of other people.
    is_trusted: bool
    is_dry_run: bool
    options: ImportOptions
    report: ImportReport
    on_progress: Callable[[int], None] | None = None  # called with the number of conversations so far
    on_entry: Callable[[], None] = lambda: None  # called after each entry of a conversation
    now: int = 0
    config: GatewayConfig = field(default_factory=GatewayConfig)

    def get_owner(self, *, has_source: bool) -> str:
        """Return for whom an item is recorded: it is the same one only for the same person."""
        return "" if self.is_trusted and has_source else self.person.id
