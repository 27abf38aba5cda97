"""The command line: `palaver` and its commands, one module for each noun.

A command parses its arguments, calls the store through the owner's view, and prints. Only `errors` turns errors
into exit codes. Commands import heavy modules only when they run: `--help` loads neither the database nor the settings,
and `--version` alone not even the commands.
"""

import sys

from palaver import __version__

# What a start creates stays, so Python looks for garbage after more new objects, and in them alone: the classes that
# `dataclass` replaces. A server that is ready looks more often.
GARBAGE_THRESHOLDS = (10_000, 100)
VERSION_TEXT = f"palaver, version {__version__}"


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        try:
            print(VERSION_TEXT, flush=True)
            return
        except OSError:  # below, the same error gets its message and its exit code
            pass
    run_command_line()


def run_command_line() -> None:
    """Run a command and exit the process."""
    import gc

    from palaver.cli.program import program
    from palaver.core.invocation import format_command

    gc.set_threshold(*GARBAGE_THRESHOLDS)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows a question mark
    try:
        program.main(prog_name=format_command(), complete_var="_PALAVER_COMPLETE")
    finally:
        gc.freeze()  # Python looks for garbage once more when it ends
