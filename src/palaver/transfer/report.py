"""The report of an import, with a bound on how much is kept; its options; and the queue through which it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Engine, Transaction, Write

if TYPE_CHECKING:
    from palaver.core.source import SessionSource
    from palaver.media.attachments import Attachments
    from palaver.people.model import Person
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.store import SessionStore
    from palaver.transfer.imported import ImportProblem, ImportReader


MAX_LISTED: Final = 200  # of problems, of notes and of folded duplicates; more are counted
_MAX_LINE_CHARS: Final = 500

MAX_BATCH_ROWS: Final = 250  # in one transaction: messages of others are stored in between
MAX_BATCH_CHARS: Final = 500_000  # of the texts in one transaction
MAX_DRY_RUN_ROWS: Final = 5_000  # the same in a dry run by the operator, which writes no messages

# The counters, and how they read in a report: one, several.
_COUNT_LABELS: Final = {
    "conversations": ("conversation", "conversations"),
    "messages": ("message", "messages"),
    "continued": (
        "conversation that went on both there and here, with its rest in a second one",
        "conversations that went on both there and here, each with its rest in a second one",
    ),
    "grown": ("conversation with new messages", "conversations with new messages"),
    "files": ("file", "files"),
    "people": ("person", "people"),
    "linked": ("chat account that is yours now", "chat accounts that are yours now"),
    "projects": ("project", "projects"),
    "saved_prompts": ("saved prompt", "saved prompts"),
    "memories": ("memory", "memories"),
    "jobs": ("job", "jobs"),
    "home_channels": ("home channel", "home channels"),
    "lanes": ("chat that continues with its conversation", "chats that continue with their conversation"),
    "unchanged": ("item that is here already", "items that are here already"),
    "deleted": ("conversation that was deleted here since", "conversations that were deleted here since"),
    "changed": (
        "conversation that has changed here or there since",
        "conversations that have changed here or there since",
    ),
    "empty": ("conversation without messages, left out", "conversations without messages, left out"),
}


@dataclass(slots=True)
class NoteList:
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, line: str) -> None:
        self.count += 1
        if len(self.lines) < MAX_LISTED:
            self.lines.append(" ".join(line[:_MAX_LINE_CHARS].split()))

    def extend(self, other: NoteList) -> None:
        self.lines += other.lines[: MAX_LISTED - len(self.lines)]
        self.count += other.count

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "listed": list(self.lines)}


@dataclass(slots=True)
class ImportReport:
    format: str
    is_dry_run: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    problems: NoteList = field(default_factory=NoteList)  # what could not be read or stored, and where
    folded: NoteList = field(default_factory=NoteList)  # what was stored several times there and comes in once
    notes: NoteList = field(default_factory=NoteList)  # what is different here, or was left as it is

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] += number

    def add_problem(self, problem: ImportProblem) -> None:
        self.problems.add(f"{problem.where}: {problem.what}")

    def extend(self, other: ImportReport) -> None:
        self.counts += other.counts
        for notes, more in ((self.problems, other.problems), (self.folded, other.folded), (self.notes, other.notes)):
            notes.extend(more)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "dry_run": self.is_dry_run,
            "counts": {name: self.counts.get(name, 0) for name in _COUNT_LABELS},
            "problems": self.problems.to_dict(),
            "folded": self.folded.to_dict(),
            "notes": self.notes.to_dict(),
        }

    def format_lines(self) -> Iterator[str]:
        yield "This would come in:" if self.is_dry_run else "Imported:"
        shown = {name: labels for name, labels in _COUNT_LABELS.items() if self.counts.get(name)}
        if not shown:
            yield "  nothing"
        for name, (singular, plural) in shown.items():
            number = self.counts[name]
            yield f"  {number:>9,}  {singular if number == 1 else plural}"
        for title, notes in (
            ("Folded (stored several times there)", self.folded),
            ("Please note", self.notes),
            ("Could not be read or stored", self.problems),
        ):
            if notes.count:
                yield f"{title}: {notes.count:,}"
                yield from (f"  - {line}" for line in notes.lines)
                if notes.count > len(notes.lines):
                    yield f"  … and {notes.count - len(notes.lines):,} more"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    profiles: frozenset[str] = frozenset()  # names in config.yaml
    personalities: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class ImportRun:
    store: SessionStore
    attachments: Attachments | None
    reader: ImportReader
    person: Person  # conversations without a source belong to them
    # The operator's import: the people, chats and jobs that the files name come in. Otherwise everything belongs to
    # `person`, and the files change nothing of other people.
    is_trusted: bool
    is_dry_run: bool
    options: ImportOptions
    own_accounts: tuple[SessionSource, ...] = ()  # that belong to `person`, as the operator said
    on_progress: Callable[[int], None] | None = None  # called with the number of conversations so far
    on_entry: Callable[[], None] = lambda: None  # called after each entry of a conversation
    report: ImportReport = field(init=False)
    now: int = field(init=False)
    config: GatewayConfig = field(init=False)

    def __post_init__(self) -> None:
        self.report = ImportReport(self.reader.format, is_dry_run=self.is_dry_run)
        self.now = to_micros(self.store.clock.now())
        self.config = self.store.config


class Batch:
    """The findings of the steps of one transaction.

    A step may run again (after a conflict with another process): what it finds out counts only once the batch is
    stored.
    """

    def __init__(self, known: dict[tuple[str, object], Any]) -> None:
        self._known = known
        self.found: dict[tuple[str, object], Any] = {}
        self.report = ImportReport("")

    def set_session(self, session_id: str | None, no: int | None) -> None:
        self.set("session", "current", (session_id, no))

    def get_session_no(self, session_id: str) -> int | None:
        """Return the number of a session if it is being written; None if it is here already."""
        current_id, no = self.get("session", "current") or (None, None)
        return no if current_id == session_id else None

    def get(self, kind: str, key: object) -> Any:
        """Return what a step of this batch or of an earlier one has found; None if none has."""
        found = self.found.get((kind, key))
        return self._known.get((kind, key)) if found is None else found

    def set(self, kind: str, key: object, value: Any) -> None:
        self.found[kind, key] = value


Step = Callable[["Transaction", Batch], object]


class _RolledBack(Exception):
    def __init__(self, batch: Batch) -> None:
        self.batch = batch


class WriteQueue:
    """Runs the steps of an import in order, many in each transaction.

    Transactions stay small, so that people who write meanwhile hardly wait, and there are few of them, because each
    has to reach the disk. `check` is called at the beginning of each: it raises if nothing may be written any more.

    A dry run does the same work and rolls it back, so that it counts what the import would count. Each of its
    transactions has whole items, because the next one sees nothing of it.
    """

    def __init__(
        self, engine: Engine, report: ImportReport, check: Callable[[Transaction], None] = lambda _tx: None
    ) -> None:
        self._engine = engine
        self._report = report
        self._check = check
        self._known: dict[tuple[str, object], Any] = {}
        self._first_steps: tuple[Step, ...] = ()
        self._steps: list[Step] = []
        self._rows = 0
        self._chars = 0

    def find(self, kind: str, key: object) -> Any:
        """Return what a stored batch has found; None if none has."""
        return self._known.get((kind, key))

    def add(self, step: Step, *, rows: int = 1, chars: int = 0) -> None:
        """Add a step that writes about so many rows and characters."""
        self._steps.append(step)
        self._rows += rows
        self._chars += chars
        if not self._report.is_dry_run and (self._rows >= MAX_BATCH_ROWS or self._chars >= MAX_BATCH_CHARS):
            self.flush()

    def add_first(self, step: Step) -> None:
        """Run a step before all others. A dry run repeats it in each transaction, as it rolls back each."""
        self.add(step)
        self.flush()
        if self._report.is_dry_run:
            self._first_steps = (step,)

    def end_item(self, max_dry_run_rows: int) -> None:
        """End the transaction of a dry run if it is long enough."""
        if self._report.is_dry_run and self._rows >= max_dry_run_rows:
            self.flush()

    def flush(self) -> None:
        """Store everything that was added, durably."""
        steps = self._steps
        if not steps:
            return

        def run(tx: Transaction) -> Batch:
            self._check(tx)
            for step in self._first_steps:
                step(tx, Batch(self._known))
            batch = Batch(self._known)
            for step in steps:
                step(tx, batch)
            if self._report.is_dry_run:
                raise _RolledBack(batch)
            return batch

        crash_point("import.before_batch")
        try:
            batch = self._engine.run(Write(run, is_long=True))
        except _RolledBack as rolled_back:
            batch = rolled_back.batch
        else:
            crash_point("import.batch_stored")
            self._known |= batch.found
        self._steps, self._rows, self._chars = [], 0, 0
        self._report.extend(batch.report)
