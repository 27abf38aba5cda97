"""Formats results as Markdown tables.

    python -m benchmarks.report RESULTS.jsonl … > tables.md

Every number is a median over repetitions. In parentheses: the ratio to the baseline, computed within each repetition,
then the median of these ratios.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.paths import RESULTS_DIR
from benchmarks.recorded import read_recorded
from benchmarks.results import Results, compute_median_ratio, get_value
from benchmarks.targets import check_targets
from benchmarks.workloads import sum_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

BASELINE = "raw_full"


def build_report(results: Results) -> str:
    report = Report(results)
    sections = [report.format_machine(), report.format_targets(), *report.format_sections()]
    return "\n".join(section for section in sections if section)


@dataclass(frozen=True)
class Report:
    """Formats the tables of one set of results."""

    results: Results

    def format_machine(self) -> str:
        if not self.results.machines:
            return ""
        machine = self.results.machines[-1]
        disk = machine["fdatasync"]
        return (
            f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']} at the start;"
            f" {machine['system']}; Python {machine['python']}, its SQLite {machine['sqlite']};"
            f" fdatasync of 4 KiB: {disk['in_place_us']:.0f} µs in place, {disk['growing_us']:.0f} µs growing.\n"
        )

    def format_targets(self) -> str:
        """Format every figure that was measured, beside what was recorded for the version before."""
        found, recorded = check_targets(self.results), read_recorded()
        rows = []
        for each in (each for each in found if each.met is not None):
            ratio = "" if each.ratio is None else f"{each.ratio:.2f}×"
            before = recorded.get(each.figure) if each.ratio is not None else None
            change = f"{before.ratio:.2f}×, {(each.ratio / before.ratio - 1) * 100:+.0f} %" if before else ""
            rows.append((each.figure, each.target, each.measured, each.label, ratio, change))
        head = ("", "target", "measured", "", "beside the raw limit", "recorded before, change")
        missing = "; ".join(each.figure for each in found if each.met is None)
        note = f"\nNot measured in this run: {missing}.\n" if missing else ""
        return format_section("Targets", format_table(head, rows)) + note

    def format_sections(self) -> Iterator[str]:
        yield self.format_by_size("W1: one turn, by number of sessions", "W1", "turn.median_us")
        yield self.format_by_size("W1: 99th percentile of the turn", "W1", "turn.p99_us")
        yield self.format_by_size("W1: CPU time per turn, all threads of the process", "W1", "cpu_us_per_turn")
        yield self.format_by_size("W1: deferred work, per turn", "W1", "later_us_per_turn")
        yield self.format_by_size("W1: one of the first 200 turns of a process", "W1", "first.median_us")
        yield self.format_by_size("W1: a turn that starts a session", "W1", "new.median_us")
        yield self.format_device_writes()
        yield self.format_by_size("W1L: one turn, by messages in the session", "W1L", "turn.median_us")
        yield self.format_written_bytes()
        yield self.format_by_size("W2: load the whole transcript, by length", "W2", "load.median_us")
        yield self.format_by_size(
            "W2: load the whole transcript for the first time in a process", "W2", "first_load_us"
        )
        yield self.format_by_size("W2: load the last 50 messages, by length", "W2", "tail50.median_us")
        yield self.format_by_size(
            "W3: list the 50 most recently active sessions, by number of sessions", "W3", "list50.median_us"
        )
        yield from self.format_searches()
        yield self.format_by_size("W5: undo the last turn, by length", "W5", "undo.median_us")
        yield self.format_by_size("W5: rewrite the whole transcript, by length", "W5", "rewrite.median_us")
        yield self.format_concurrent_turns("W6P", "W6: turns of four processes on one store")
        yield self.format_concurrent_turns("W6T", "W6: turns of four callers on one open store")
        yield self.format_kills()
        yield from self.format_starts()
        yield self.format_callers()
        yield self.format_commands()

    def format_by_size(self, title: str, work: str, path: str) -> str:
        """Format a table of one number, with a column for each size."""
        sizes = self.results.list_sizes(work)
        rows = []
        for driver in self.results.list_drivers(work):
            cells = [self.format_cell(work, driver, size, path) for size in sizes]
            if any(cell not in {"–", ""} for cell in cells):
                rows.append((driver, *cells))
        return format_section(title, format_table(("", *(f"{size:,}" for size in sizes)), rows))

    def format_cell(self, work: str, driver: str, size: int, path: str, base: str = BASELINE) -> str:
        """Format one number with its ratio to the baseline, or say why it is missing."""
        value = self.results.get_median(work, driver, size, path)
        if value is None:
            return self.explain_missing(work, driver, size, path)
        if driver == base:
            return format_duration(value)
        values = self.results.get_values(work, driver, size, path)
        return format_duration(value) + format_ratio(
            compute_median_ratio(values, self.results.get_values(work, base, size, path))
        )

    def explain_missing(self, work: str, driver: str, size: int, path: str) -> str:
        section = path.partition(".")[0]
        for line in self.results.find_lines(work, driver, size):
            if "unsupported" in line or f"{section}_unsupported" in line:
                return "no API"
            if "error" in line or get_value(line, f"{section}.failed"):
                return "failed"
        return "–"

    def format_device_writes(self) -> str:
        """Format the table of W1IO."""
        sizes = self.results.list_sizes("W1IO")
        rows = []
        for driver in self.results.list_drivers("W1IO"):
            row = [driver]
            for size in sizes:
                syncs = self.results.get_median("W1IO", driver, size, "fsyncs_per_turn")
                written = self.results.get_median("W1IO", driver, size, "bytes_per_turn")
                row.append("–" if syncs is None else f"{syncs:.1f}, {format_bytes(written)}")
            rows.append(row)
        columns = (f"{size:,} sessions" for size in sizes)
        return format_section("W1: fsyncs and bytes written per turn", format_table(("", *columns), rows))

    def format_written_bytes(self) -> str:
        """Format the bytes per turn of W1L."""
        sizes = self.results.list_sizes("W1L")
        rows = []
        for driver in self.results.list_drivers("W1L"):
            values = [self.results.get_median("W1L", driver, size, "wchar_per_turn") for size in sizes]
            if any(value is not None for value in values):
                rows.append((driver, *map(format_bytes, values)))
        head = ("", *(f"{size:,}" for size in sizes))
        return format_section("W1L: bytes written per turn, by messages in the session", format_table(head, rows))

    def format_searches(self) -> Iterator[str]:
        """Format the tables of W4, one for each size."""
        kinds = ("rare", "common", "rare_zh", "common_zh", "own")
        head = ("", "rare", "common", "rare, Chinese", "common, Chinese", "common, own messages", "turn", "store")
        for size in self.results.list_sizes("W4"):
            rows = []
            for driver in self.results.list_drivers("W4", size):
                store_mib = self.results.get_median("W4", driver, size, "store_mib")
                if store_mib is None:
                    continue
                cells = [self.format_search(driver, size, kind) for kind in kinds]
                turn = self.format_cell("W4", driver, size, "turn.median_us", "raw_full_fts")
                rows.append((driver, *cells, turn, f"{store_mib:,.0f} MiB"))
            title = f"W4: search among {size:,} messages, up to 20 hits"
            yield format_section(title, format_table(head, rows))

    def format_search(self, driver: str, size: int, kind: str) -> str:
        """Format the time of one search, or how many of the expected hits it misses."""
        cell = self.format_cell("W4", driver, size, f"{kind}.median_us", "raw_full_fts")
        hits = self.results.get_median("W4", driver, size, f"{kind}.hits")
        expected = self.results.get_median("W4", driver, size, f"{kind}.there")
        if cell in {"failed", "no API", "–"} or hits is None or expected is None or hits >= expected:
            return cell
        return f"finds {hits:.0f} of {expected:.0f}"

    def format_concurrent_turns(self, work: str, title: str) -> str:
        """Format a table of W6."""
        rows = []
        for driver in self.results.list_drivers(work):
            rate = self.results.get_median(work, driver, None, "turns_per_s")
            values = self.results.get_values(work, driver, None, "turns_per_s")
            relative = compute_median_ratio(values, self.results.get_values(work, BASELINE, None, "turns_per_s"))
            row = (driver, _format_rate(rate), "" if relative is None else f"{relative:.2f}×")
            rows.append((*row, *self.format_failures(work, driver)))
        head = ("", "turns/s", f"of {BASELINE}", "failed turns", "lost", "duplicated")
        return format_section(title, format_table(head, rows))

    def format_failures(self, work: str, driver: str) -> tuple[str, str, str]:
        """Format the failures and the lost and duplicated messages of all repetitions."""
        lines = self.results.find_lines(work, driver)
        errors = sum_counts(line.get("errors") or {} for line in lines)
        for line in lines:
            for key in ("error", "unreadable"):
                if key in line:
                    errors[str(line[key])[:60]] = 1
        failed = "; ".join(f"{count}× {name}" for name, count in errors.items()) or "0"
        return failed, _format_total(lines, "lost"), _format_total(lines, "doubled")

    def format_kills(self) -> str:
        """Format the table of W7."""
        columns = ("kills", "acked", "lost", "torn", "unreadable", "did_not_open")
        rows = []
        for driver in self.results.list_drivers("W7"):
            lines = self.results.find_lines("W7", driver)
            examples = "; ".join(text for line in lines for text in line.get("examples") or ())
            failed = "; ".join(line["error"][:80] for line in lines if "error" in line)
            rows.append((driver, *(_format_total(lines, name) for name in columns), examples or failed))
        head = ("", "kills", "acknowledged", "lost", "out of order", "unreadable", "did not open", "")
        return format_section("W7: kill -9 while appending", format_table(head, rows))

    def format_starts(self) -> Iterator[str]:
        """Format the tables of W8, one for each size."""
        for size in self.results.list_sizes("W8"):
            rows = []
            for driver in self.results.list_drivers("W8", size):
                names = ("open_s", "first_read_s", "first_turn_s")
                values = [self.results.get_median("W8", driver, size, name) for name in names]
                rss = self.results.get_median("W8", driver, size, "rss_mib")
                cells = ["–" if value is None else format_duration(value * 1e6) for value in values]
                rows.append((driver, *cells, "–" if rss is None else f"{rss:.0f} MiB"))
            head = ("", "import and open", "first read", "first turn", "memory")
            yield format_section(f"W8: a new process on {size:,} sessions", format_table(head, rows))

    def format_callers(self) -> str:
        """Format the table of W9."""
        rows = []
        for driver in self.results.list_drivers("W9"):
            lines = self.results.find_lines("W9", driver)
            concurrency = next((line["form"] for line in lines if "form" in line), "–")
            single = self.results.get_median("W9", driver, None, "by_1")
            many = self.results.get_median("W9", driver, None, "by_32")
            growth = self.results.get_median("W9", driver, None, "times")
            row = (
                driver,
                concurrency,
                _format_rate(single),
                _format_rate(many),
                "–" if growth is None else f"{growth:.1f}×",
            )
            rows.append((*row, *self.format_failures("W9", driver)))
        head = ("", "concurrency", "one caller", "32 callers", "ratio", "failed", "lost", "duplicated")
        title = "W9: durable appends per second on one open store, each caller on its own session"
        return format_section(title, format_table(head, rows))

    def format_commands(self) -> str:
        """Format the table of W10."""
        rows = []
        for driver in self.results.list_drivers("W10"):
            for size in self.results.list_sizes("W10", driver):
                lines = self.results.find_lines("W10", driver, size)
                for name in dict.fromkeys(name for line in lines for name in line.get("commands", ())):
                    value = self.results.get_median("W10", driver, size, f"commands.{name}.median_us")
                    failed = next((get_value(line, f"commands.{name}.failed") for line in lines), None)
                    rows.append((f"`{name}`", f"{size:,}", failed if value is None else format_duration(value)))
        return format_section("W10: the command line", format_table(("", "sessions", "time"), rows))


# -- texts --------------------------------------------------------------------------------------------------


def format_section(title: str, body: str) -> str:
    """Return a heading and a table, or an empty string if the table has no rows."""
    return f"\n### {title}\n\n{body}" if body else ""


def format_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table, or an empty string without rows."""
    body = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    if not body:
        return ""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *body, ""])


def format_duration(micros: float) -> str:
    if micros >= 1e6:
        return f"{micros / 1e6:.2f} s"
    if micros >= 9_995:
        return f"{micros / 1e3:.0f} ms"
    return f"{micros / 1e3:.2f} ms" if micros >= 999.5 else f"{micros:.0f} µs"


def format_ratio(value: float | None) -> str:
    """Return the ratio in parentheses, or an empty string."""
    if value is None:
        return ""
    return f" ({value:.1f}×)" if value < 100 else f" ({value:,.0f}×)"


def format_bytes(count: float | None) -> str:
    if count is None:
        return "–"
    return f"{count / 1024:.0f} KiB" if count < 2**20 else f"{count / 2**20:.1f} MiB"


def _format_rate(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _format_total(lines: Iterable[dict[str, object]], name: str) -> str:
    values = [value for line in lines if isinstance(value := line.get(name), int)]
    return f"{sum(values):,}" if values else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help=f"default: all in {RESULTS_DIR}")
    options = parser.parse_args()
    print(build_report(Results.read(options.files or sorted(RESULTS_DIR.glob("*.jsonl")))))


if __name__ == "__main__":
    main()
