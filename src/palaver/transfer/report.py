"""What an import has done, or would do: numbers, and what people should know, with a bound on how much is kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.transfer.imported import ImportProblem

MAX_LISTED: Final = 200  # of problems, of notes and of folded duplicates; more are counted
_MAX_LINE_CHARS: Final = 500

# The counters, and how they read in a report.
_COUNT_WORDS: Final = {
    "conversations": "conversations",
    "messages": "messages",
    "grown": "conversations with new messages",
    "files": "files",
    "people": "people",
    "projects": "projects",
    "saved_prompts": "saved prompts",
    "memories": "memories",
    "jobs": "jobs",
    "home_channels": "home channels",
    "lanes": "chats that continue with their conversation",
    "unchanged": "items that are here already",
    "deleted": "conversations that were deleted here since",
    "changed": "conversations that have changed here or there since",
    "empty": "conversations without messages, left out",
}

_SINGULARS: Final = {
    "conversations": "conversation",
    "messages": "message",
    "files": "file",
    "people": "person",
    "projects": "project",
    "saved prompts": "saved prompt",
    "memories": "memory",
    "jobs": "job",
    "home channels": "home channel",
    "items that are here already": "item that is here already",
}


@dataclass(slots=True)
class NoteList:
    """The first notes, and the number of all."""

    lines: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, line: str) -> None:
        self.count += 1
        if len(self.lines) < MAX_LISTED:
            self.lines.append(" ".join(line[:_MAX_LINE_CHARS].split()))


@dataclass(slots=True)
class ImportReport:
    """The outcome of an import."""

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

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        return {
            "format": self.format,
            "dry_run": self.is_dry_run,
            "counts": {name: self.counts.get(name, 0) for name in _COUNT_WORDS},
            "problems": {"count": self.problems.count, "listed": list(self.problems.lines)},
            "folded": {"count": self.folded.count, "listed": list(self.folded.lines)},
            "notes": {"count": self.notes.count, "listed": list(self.notes.lines)},
        }

    def format_lines(self) -> Iterator[str]:
        """Yield the report as text, for a terminal."""
        yield "This would come in:" if self.is_dry_run else "Imported:"
        shown = {name: words for name, words in _COUNT_WORDS.items() if self.counts.get(name)}
        if not shown:
            yield "  nothing"
        for name, words in shown.items():
            number = self.counts[name]
            yield f"  {number:>9,}  {_SINGULARS.get(words, words) if number == 1 else words}"
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
