"""Crash points: named places in the code where tests kill the process.

The code calls `crash_point("turn.ended")` wherever it matters what happens if nothing after that line runs. In
production the call does nothing; a test installs a hook that kills the process at a given name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

CrashPoint = Literal[
    "backup.before_copy",
    "backup.before_name",
    "backup.copied",
    "backup.files_linked",
    "backup.named",
    "backup.step",
    "call.before_hold",
    "call.before_settle",
    "call.held",
    "call.settled",
    "import.batch_stored",
    "import.before_batch",
    "import.file_stored",
    "inbox.accepted",
    "inbox.before_accept",
    "inbox.before_download",
    "inbox.command_read",
    "inbox.files_received",
    "speech.transcribed",
    "migrate.batch_copied",
    "migrate.before_batch",
    "migrate.before_end",
    "migrate.ended",
    "migrate.rows_copied",
    "migrate.started",
    "push.claimed",
    "push.sent",
    "restore.before_swap",
    "restore.copied",
    "restore.files_linked",
    "restore.log_removed",
    "restore.marked",
    "restore.old_kept",
    "restore.swapped",
    "turn.after_tool",
    "turn.agent_event",
    "turn.before_claim",
    "turn.before_compaction",
    "turn.before_draft_save",
    "turn.before_end",
    "turn.before_recovery",
    "turn.before_release",
    "turn.before_steering",
    "turn.before_tool",
    "turn.before_tool_mark",
    "turn.claimed",
    "turn.compacted",
    "turn.draft_saved",
    "turn.ended",
    "turn.recovered",
    "turn.released",
    "turn.steered",
    "delivery.before_claim",
    "delivery.before_confirmation",
    "delivery.before_outcome_save",
    "delivery.before_parts_save",
    "delivery.before_recovery",
    "delivery.before_send",
    "delivery.claimed",
    "delivery.confirmed",
    "delivery.outcome_saved",
    "delivery.parts_saved",
    "delivery.recovered",
    "delivery.sent",
    "deletion.before_piece",
    "erase.before_batch",
    "erase.before_file_deletion",
    "erase.batch_stored",
    "erase.started",
    "expiry.before_end",
    "expiry.ended",
    "link.moved",
    "link.stored",
    "unlink.moved",
    "memory.before_claim",
    "memory.before_end",
    "memory.claimed",
    "memory.ended",
    "job.before_firing",
    "job.before_start",
    "job.fired",
    "job.started",
    "settings.before_change",
    "settings.before_key_cleanup",
    "settings.before_rotation",
    "settings.changed",
    "settings.key_written",
    "settings.rotated",
    "preview.before_save",
    "preview.grown",
    "preview.id_saved",
    "preview.removed",
    "preview.saved",
    "preview.sent",
    "upload.confirmed",
    "upload.received",
    "upload.saved",
]

_hook: Callable[[CrashPoint], None] | None = None


def crash_point(name: CrashPoint) -> None:
    """Call the hook, if a test has set one."""
    if _hook is not None:
        _hook(name)


def set_crash_hook(hook: Callable[[CrashPoint], None] | None) -> None:
    """Call `hook` with the name of every crash point that this process passes; None removes the hook."""
    global _hook  # noqa: PLW0603  (one process, one hook)
    _hook = hook
