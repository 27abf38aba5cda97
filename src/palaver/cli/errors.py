"""What goes wrong, as the terminal says it: one line on stderr, and an exit code that scripts can rely on.

Always true: an error that Palaver raises on purpose never shows a traceback; a mistake of ours still does.
With --json the error is one JSON document on stderr. The codes are documented in docs/reference/cli.md.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click
from click.exceptions import NoArgsIsHelpError

from palaver.cli.output import clean, json_text
from palaver.domain.errors import (
    ConfigError,
    NotAllowed,
    NotFound,
    NothingToDo,
    PalaverError,
    StoreError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

OTHER = 1
INTERRUPTED = 130  # as a shell reports it: 128 and the number of SIGINT
READER_LEFT = 141  # 128 and the number of SIGPIPE


class AnswerFailed(PalaverError):
    """The agent could not answer this message."""


class AnswerStopped(PalaverError):
    """The answer to this message was stopped."""


class MessageRefused(PalaverError):
    """This message was not taken."""


EXIT_CODES: tuple[tuple[type[PalaverError], int], ...] = (
    (NotFound, 3),
    (NotAllowed, 4),
    (StoreError, 5),
    (NothingToDo, 6),
    (ConfigError, 7),
    (AnswerFailed, 8),
    (AnswerStopped, 9),
    (MessageRefused, 10),
    (PalaverError, OTHER),
)


class ReaderLeft(Exception):
    """Whoever read our output has seen enough."""


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Tell a closed pipe from every other failure, before anybody else takes it for an error."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderLeft from None


def exit_code_of(run: Callable[[], object], *, as_json: bool) -> int:
    """Run a command line; say what went wrong, if anything, and with which code to leave."""
    try:
        code = run()
    except PalaverError as error:
        say_error(error, as_json=as_json)
        return exit_code_for(error)
    except click.ClickException as error:
        _say_usage(error, as_json=as_json)
        return error.exit_code
    except click.Abort:
        if as_json:
            _say("interrupted", "interrupted", {}, as_json=True)
        return INTERRUPTED
    except ReaderLeft:
        _let_go_of_stdout()
        return READER_LEFT
    except OSError as error:  # the disk behind a redirection is full, the current folder is gone
        _let_go_of_stdout()
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        _say("os_error", what, {"errno": error.errno}, as_json=as_json)
        return OTHER
    return code if isinstance(code, int) else 0


def exit_code_for(error: PalaverError) -> int:
    """With which code a command leaves that met this."""
    return next(number for kind, number in EXIT_CODES if isinstance(error, kind))


def say_error(error: PalaverError, *, as_json: bool = False) -> None:
    """Say what went wrong."""
    _say(error.code, str(error), error.facts, as_json=as_json)


def _say(code: str, message: str, facts: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        document = {"error": {"code": code, "message": message, "facts": dict(facts)}}
        click.echo(json_text(document, ascii_only=True), err=True)
        return
    first, *rest = clean(message).splitlines() or [""]
    click.echo("\n".join([f"error: {first}", *(f"  {line}" for line in rest)]), err=True)


def _say_usage(error: click.ClickException, *, as_json: bool) -> None:
    if isinstance(error, NoArgsIsHelpError) and not as_json:
        click.echo(error.format_message(), err=True)
        return
    message = "which command?" if isinstance(error, NoArgsIsHelpError) else error.format_message()
    _say("usage", message, {}, as_json=as_json)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None and not as_json:
        click.echo(f"{context.get_usage()}\nTry '{context.command_path} --help'.", err=True)


def _let_go_of_stdout() -> None:
    """Nothing more can be written: do not let the end of the process try again and complain."""
    if sys.stdout is not None:
        with suppress(OSError):  # an output that is no file has nothing to let go of
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
