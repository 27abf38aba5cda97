"""Results as Markdown tables.

    python -m benchmarks.report RESULTS.jsonl … > tables.md

Every number is a median over repetitions. In brackets stands the ratio to the baseline, taken within each
repetition, then the median.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.places import RESULTS
from benchmarks.results import Results, at, ratio
from benchmarks.verdict import verdicts
from benchmarks.workloads import together

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

BASE = "raw_full"


def markdown(results: Results) -> str:
    """The whole report."""
    report = Report(results)
    sections = [report.machine(), report.verdicts(), *report.sections()]
    return "\n".join(section for section in sections if section)


@dataclass(frozen=True)
class Report:
    """Tables over one set of results."""

    results: Results

    def machine(self) -> str:
        """What it was measured on."""
        if not self.results.machines:
            return ""
        machine = self.results.machines[-1]
        disk = machine["fdatasync"]
        return (
            f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']} at the start;"
            f" {machine['system']}; Python {machine['python']}, its SQLite {machine['sqlite']};"
            f" fdatasync of 4 KiB: {disk['in_place_us']:.0f} µs in place, {disk['growing_us']:.0f} µs growing.\n"
        )

    def verdicts(self) -> str:
        """The targets."""
        rows = [(each.target, each.measured, each.word) for each in verdicts(self.results)]
        return section("Targets", table(("target", "measured", ""), rows))

    def sections(self) -> Iterator[str]:
        """Everything that was measured."""
        yield self.by_size("W1: one turn, by number of sessions", "W1", "turn.median_us")
        yield self.by_size("W1: 99th percentile of the turn", "W1", "turn.p99_us")
        yield self.by_size("W1: CPU time per turn, all threads of the process", "W1", "cpu_us_per_turn")
        yield self.by_size("W1: work put off until after the turn, per turn", "W1", "later_us_per_turn")
        yield self.by_size("W1: a turn among the first 200 of a process", "W1", "first.median_us")
        yield self.by_size("W1: a turn that begins a session", "W1", "new.median_us")
        yield self.device()
        yield self.by_size("W1L: one turn, by messages behind it", "W1L", "turn.median_us")
        yield self.written()
        yield self.by_size("W2: whole transcript, by its length", "W2", "load.median_us")
        yield self.by_size("W2: the same, first time in a process", "W2", "first_load_us")
        yield self.by_size("W2: last 50 messages, by length", "W2", "tail50.median_us")
        yield self.by_size("W3: the 50 sessions active last, by their number", "W3", "list50.median_us")
        yield from self.searches()
        yield self.by_size("W5: take the last turn back, by length", "W5", "undo.median_us")
        yield self.by_size("W5: rewrite the whole transcript", "W5", "rewrite.median_us")
        yield self.crowd("W6P", "W6: four processes taking turns on one store")
        yield self.crowd("W6T", "W6: four callers taking turns on one open store")
        yield self.kills()
        yield from self.starts()
        yield self.callers()
        yield self.commands()

    def by_size(self, title: str, work: str, path: str) -> str:
        """One number, a column for each size."""
        sizes = self.results.sizes(work)
        rows = []
        for driver in self.results.drivers(work):
            cells = [self.cell(work, driver, size, path) for size in sizes]
            if any(cell not in {"–", ""} for cell in cells):
                rows.append((driver, *cells))
        return section(title, table(("", *(f"{size:,}" for size in sizes)), rows))

    def cell(self, work: str, driver: str, size: int, path: str, base: str = BASE) -> str:
        """One number with its ratio to the baseline, or why there is none."""
        value = self.results.median(work, driver, size, path)
        if value is None:
            return self.why_not(work, driver, size, path)
        if driver == base:
            return duration(value)
        mine = self.results.values(work, driver, size, path)
        return duration(value) + times(ratio(mine, self.results.values(work, base, size, path)))

    def why_not(self, work: str, driver: str, size: int, path: str) -> str:
        """What stands in place of a number."""
        first = path.partition(".")[0]
        for line in self.results.of(work, driver, size):
            if "unsupported" in line or f"{first}_unsupported" in line:
                return "no API"
            if "error" in line or at(line, f"{first}.failed"):
                return "failed"
        return "–"

    def device(self) -> str:
        """W1IO."""
        sizes = self.results.sizes("W1IO")
        rows = []
        for driver in self.results.drivers("W1IO"):
            row = [driver]
            for size in sizes:
                syncs = self.results.median("W1IO", driver, size, "fsyncs_per_turn")
                written = self.results.median("W1IO", driver, size, "bytes_per_turn")
                row.append("–" if syncs is None else f"{syncs:.1f}, {amount(written)}")
            rows.append(row)
        columns = (f"{size:,} sessions" for size in sizes)
        return section("W1: fsyncs and bytes written per turn", table(("", *columns), rows))

    def written(self) -> str:
        """Bytes per turn of W1L."""
        sizes = self.results.sizes("W1L")
        rows = []
        for driver in self.results.drivers("W1L"):
            found = [self.results.median("W1L", driver, size, "wchar_per_turn") for size in sizes]
            if any(value is not None for value in found):
                rows.append((driver, *map(amount, found)))
        head = ("", *(f"{size:,}" for size in sizes))
        return section("W1L: bytes written per turn, by messages behind it", table(head, rows))

    def searches(self) -> Iterator[str]:
        """W4, a table for each size."""
        kinds = ("rare", "common", "rare_zh", "common_zh", "own")
        head = ("", "rare", "common", "rare, Chinese", "common, Chinese", "common, one’s own", "turn", "store")
        for size in self.results.sizes("W4"):
            rows = []
            for driver in self.results.drivers("W4", size):
                room = self.results.median("W4", driver, size, "store_mib")
                if room is None:
                    continue
                cells = [self.search(driver, size, kind) for kind in kinds]
                turn = self.cell("W4", driver, size, "turn.median_us", "raw_full_fts")
                rows.append((driver, *cells, turn, f"{room:,.0f} MiB"))
            title = f"W4: search among {size:,} messages, up to 20 hits"
            yield section(title, table(head, rows))

    def search(self, driver: str, size: int, kind: str) -> str:
        """One search, and whether it finds what is there."""
        shown = self.cell("W4", driver, size, f"{kind}.median_us", "raw_full_fts")
        hits = self.results.median("W4", driver, size, f"{kind}.hits")
        there = self.results.median("W4", driver, size, f"{kind}.there")
        if shown in {"failed", "no API", "–"} or hits is None or there is None or hits >= there:
            return shown
        return f"finds {hits:.0f} of {there:.0f}"

    def crowd(self, work: str, title: str) -> str:
        """W6."""
        rows = []
        for driver in self.results.drivers(work):
            rate = self.results.median(work, driver, None, "turns_per_s")
            mine = self.results.values(work, driver, None, "turns_per_s")
            relative = ratio(mine, self.results.values(work, BASE, None, "turns_per_s"))
            row = (driver, _rate(rate), "" if relative is None else f"{relative:.2f}×")
            rows.append((*row, *self.kept(work, driver)))
        head = ("", "turns/s", f"of {BASE}", "failed turns", "lost", "doubled")
        return section(title, table(head, rows))

    def kept(self, work: str, driver: str) -> tuple[str, str, str]:
        """Failures, lost and doubled messages of all repetitions."""
        lines = self.results.of(work, driver)
        errors = together(line.get("errors") or {} for line in lines)
        for line in lines:
            for key in ("error", "unreadable"):
                if key in line:
                    errors[str(line[key])[:60]] = 1
        failed = "; ".join(f"{count}× {name}" for name, count in errors.items()) or "0"
        return failed, _total(lines, "lost"), _total(lines, "doubled")

    def kills(self) -> str:
        """W7."""
        columns = ("kills", "acked", "lost", "torn", "unreadable", "did_not_open")
        rows = []
        for driver in self.results.drivers("W7"):
            lines = self.results.of("W7", driver)
            examples = "; ".join(text for line in lines for text in line.get("examples") or ())
            failed = "; ".join(line["error"][:80] for line in lines if "error" in line)
            rows.append((driver, *(_total(lines, name) for name in columns), examples or failed))
        head = ("", "kills", "acknowledged", "lost", "out of order", "unreadable", "did not open", "")
        return section("W7: kill -9 while appending", table(head, rows))

    def starts(self) -> Iterator[str]:
        """W8, a table for each size."""
        for size in self.results.sizes("W8"):
            rows = []
            for driver in self.results.drivers("W8", size):
                names = ("open_s", "first_read_s", "first_turn_s")
                found = [self.results.median("W8", driver, size, name) for name in names]
                rss = self.results.median("W8", driver, size, "rss_mib")
                cells = ["–" if value is None else duration(value * 1e6) for value in found]
                rows.append((driver, *cells, "–" if rss is None else f"{rss:.0f} MiB"))
            head = ("", "import and open", "first read", "first turn", "memory")
            yield section(f"W8: a fresh process on {size:,} sessions", table(head, rows))

    def callers(self) -> str:
        """W9."""
        rows = []
        for driver in self.results.drivers("W9"):
            lines = self.results.of("W9", driver)
            form = next((line["form"] for line in lines if "form" in line), "–")
            one = self.results.median("W9", driver, None, "by_1")
            many = self.results.median("W9", driver, None, "by_32")
            more = self.results.median("W9", driver, None, "times")
            row = (driver, form, _rate(one), _rate(many), "–" if more is None else f"{more:.1f}×")
            rows.append((*row, *self.kept("W9", driver)))
        head = ("", "form", "one caller", "32 callers", "ratio", "failed", "lost", "doubled")
        title = "W9: durable appends per second on one open store, each caller on its own session"
        return section(title, table(head, rows))

    def commands(self) -> str:
        """W10."""
        rows = []
        for driver in self.results.drivers("W10"):
            for size in self.results.sizes("W10", driver):
                lines = self.results.of("W10", driver, size)
                for name in dict.fromkeys(name for line in lines for name in line.get("commands", ())):
                    value = self.results.median("W10", driver, size, f"commands.{name}.median_us")
                    failed = next((at(line, f"commands.{name}.failed") for line in lines), None)
                    rows.append((f"`{name}`", f"{size:,}", failed if value is None else duration(value)))
        return section("W10: the command line", table(("", "sessions", "until it has answered"), rows))


# -- texts --------------------------------------------------------------------------------------------------


def section(title: str, body: str) -> str:
    """A heading and a table; nothing when the table has no rows."""
    return f"\n### {title}\n\n{body}" if body else ""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; nothing without rows."""
    body = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    if not body:
        return ""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *body, ""])


def duration(micros: float) -> str:
    """As people read it."""
    if micros >= 1e6:
        return f"{micros / 1e6:.2f} s"
    if micros >= 9_995:
        return f"{micros / 1e3:.0f} ms"
    return f"{micros / 1e3:.2f} ms" if micros >= 999.5 else f"{micros:.0f} µs"


def times(value: float | None) -> str:
    """A ratio in brackets."""
    if value is None:
        return ""
    return f" ({value:.1f}×)" if value < 100 else f" ({value:,.0f}×)"


def amount(count: float | None) -> str:
    """Bytes as people read them."""
    if count is None:
        return "–"
    return f"{count / 1024:.0f} KiB" if count < 2**20 else f"{count / 2**20:.1f} MiB"


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _total(lines: Iterable[dict[str, object]], name: str) -> str:
    found = [value for line in lines if isinstance(value := line.get(name), int)]
    return f"{sum(found):,}" if found else "–"


def main() -> None:
    """Print the report of some results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help=f"by default all in {RESULTS}")
    given = parser.parse_args()
    print(markdown(Results.read(given.files or sorted(RESULTS.glob("*.jsonl")))))


if __name__ == "__main__":
    main()
