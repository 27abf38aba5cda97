"""What the adapter remembers besides its cursor, in a small file: when it was connected, which messages were edited.

An edit on Signal is a message with a time of its own. The next edit names the last one, while the gateway knows only
the first; reactions and quotes may name any of them.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter, OrderedDict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from palaver.platforms.signal.ids import MessageRef

if TYPE_CHECKING:
    from pathlib import Path

MAX_REVISIONS: Final = 500


class AdapterState:
    """The file of one account. What it holds is lost without harm, if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changing = threading.Lock()  # edits of ours are noted in another thread than those of people
        fields = _read(path)
        self.connected_at = _read_time(fields.get("connected_at"))
        self._originals: OrderedDict[str, int] = OrderedDict()  # id of a revision → time of the original
        self._latest: dict[str, int] = {}  # id of an original → time of its last revision
        self._counts: Counter[str] = Counter()  # of revisions, by the id of the original
        with contextlib.suppress(TypeError, ValueError):
            for author, original, revision in fields.get("revisions") or ():
                self._add(MessageRef(str(author), int(original)), int(revision))

    def note_connected(self, now: datetime) -> None:
        with self._changing:
            self.connected_at = now
            self._save()

    def note_revision(self, target: MessageRef, revision: MessageRef) -> None:
        """Remember that a message was replaced by another."""
        with self._changing:
            original = self.find_original(target)
            if original.timestamp != revision.timestamp:
                self._add(original, revision.timestamp)
                self._save()

    def find_original(self, ref: MessageRef) -> MessageRef:
        return MessageRef(ref.author, self._originals.get(ref.id, ref.timestamp))

    def find_latest(self, ref: MessageRef) -> MessageRef:
        original = self.find_original(ref)
        return MessageRef(ref.author, self._latest.get(original.id, original.timestamp))

    def count_revisions(self, ref: MessageRef) -> int:
        """Return how often a message was edited."""
        return self._counts[self.find_original(ref).id]

    def _add(self, original: MessageRef, revision: int) -> None:
        self._originals[MessageRef(original.author, revision).id] = original.timestamp
        self._latest[original.id] = max(revision, self._latest.get(original.id, 0))
        self._counts[original.id] += 1
        while len(self._originals) > MAX_REVISIONS:
            revision_id, timestamp = self._originals.popitem(last=False)
            oldest = MessageRef(revision_id.rpartition(":")[0], timestamp).id
            self._counts[oldest] -= 1
            if not self._counts[oldest]:
                del self._counts[oldest], self._latest[oldest]

    def _save(self) -> None:
        ids = ((*revision_id.rpartition(":"), original) for revision_id, original in self._originals.items())
        revisions = [(author, original, int(revision)) for author, _, revision, original in ids]
        fields = {
            "connected_at": self.connected_at.isoformat() if self.connected_at else None,
            "revisions": revisions,
        }
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(fields), encoding="utf-8")
        new.replace(self._path)


def _read(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _read_time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC) if value else None
    except ValueError:
        return None
