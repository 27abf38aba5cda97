"""A process that imports: kills itself at a crash point. Run as a script, with JSON as its only argument."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from palaver import GatewayConfig, SessionStore
from palaver.core.crash_points import set_crash_hook
from palaver.media.attachments import Attachments
from palaver.transfer import conversation_writer, report as write_queue, restore
from palaver.transfer.importer import Importer
from palaver.transfer.restore import restore_export
from support.made_reader import MadeReader, make_compaction, make_conversation, make_exchange, make_file, make_message


def make_reader() -> MadeReader:
    """Make conversations of which some are longer than a transaction, with files, hidden messages and a summary."""
    from palaver import SessionSource, TurnUsage

    ada = SessionSource("telegram", "ada", user_id="ada", user_name="Ada")
    club = SessionSource("discord", "club", chat_type="group", chat_name="Club")
    usage = TurnUsage(turn_id="t1", model="gpt-5", provider="openai", input_tokens=10, output_tokens=4, cost="0.25")
    entries = [
        *make_exchange(*(f"text {number}" for number in range(9))),
        *(make_message(f"hidden {number}", 10 + number, hidden=True) for number in range(5)),
        make_message("look", 20, files=(make_file("a.txt", b"one"), make_file("b.bin", b"\x00\x01"))),
        make_compaction("So far.", 21, kept_count=2),
        *(make_message(f"more {number}", 30 + number) for number in range(6)),
    ]
    shared = [
        make_message(f"from {name}", number, author={"id": name, "name": name})
        for number, name in enumerate(["x", "y"])
    ]
    return MadeReader(
        [
            make_conversation("short", make_exchange("a", "b"), title="Trip"),
            make_conversation("long", entries, title="Trip", source=ada, is_current=True, usage=(usage,)),
            make_conversation("shared", shared, source=club),
            make_conversation("branch", make_exchange("c"), parent_origin_id="short"),
        ],
        format="made",
    )


def run_import(url: str, folder: str, export: str | None, crash_at: list[object] | None) -> dict[str, int]:
    """Import, with transactions of a few rows; kill this process at the given passing of a crash point."""
    passed: list[str] = []

    def pass_crash_point(name: str) -> None:
        passed.append(name)
        if [name, passed.count(name)] == crash_at:
            os.kill(os.getpid(), signal.SIGKILL)

    for module, name in (
        (write_queue, "MAX_BATCH_ROWS"),
        (conversation_writer, "ROWS_PER_STEP"),
        (restore, "EVENTS_PER_STEP"),
    ):
        assert hasattr(module, name)
        setattr(module, name, 3)
    set_crash_hook(pass_crash_point)
    config = GatewayConfig(group_sessions_per_user=False)
    with SessionStore.open(url, config=config) as store:
        attachments = Attachments(store, Path(folder) / "attachments")
        if export is not None:
            restore_export(store, attachments, Path(export))
        else:
            Importer(store, attachments).import_files(make_reader(), store.get_owner())
    return {name: passed.count(name) for name in set(passed)}


if __name__ == "__main__":
    print(json.dumps(run_import(**json.loads(sys.argv[1]))))  # noqa: T201
