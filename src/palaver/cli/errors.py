"""Errors on the command line: one message on stderr, and an exit code that scripts can rely on.

Always true: an error that Palaver raises on purpose never shows a traceback; a bug in Palaver still does.
With --json the error is one JSON document on stderr. The codes are documented in docs/reference/cli.md.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import click
from click.exceptions import NoArgsIsHelpError

from palaver.cli.output import clean_text, format_json
from palaver.core.errors import ConfigError, NotAllowed, NotFound, NothingToDo, PalaverError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

OTHER_ERROR_CODE = 1
INTERRUPTED_CODE = 130  # as a shell reports it: 128 plus the number of SIGINT
OUTPUT_CLOSED_CODE = 141  # 128 plus the number of SIGPIPE


class AnswerFailed(PalaverError):
    """The agent could not answer this message."""


class AnswerStopped(PalaverError):
    """The answer to this message was stopped."""


class MessageRejected(PalaverError):
    """The gateway did not accept this message."""


EXIT_CODES: tuple[tuple[type[PalaverError], int], ...] = (
    (NotFound, 3),
    (NotAllowed, 4),
    (StoreError, 5),
    (NothingToDo, 6),
    (ConfigError, 7),
    (AnswerFailed, 8),
    (AnswerStopped, 9),
    (MessageRejected, 10),
    (PalaverError, OTHER_ERROR_CODE),
)

# Which extra of the `palaver` package installs a module. Every other module comes with Palaver itself.
EXTRA_BY_MODULE: Final[Mapping[str, str]] = {
    "psycopg": "postgres",
    "psycopg_binary": "postgres",
    "xllamacpp": "local",
    "pypdfium2": "documents",
    "python_calamine": "documents",
    **dict.fromkeys(
        ("anthropic", "fastmcp", "genai_prices", "google", "mcp", "mcp_types", "openai", "pydantic_ai"), "models"
    ),
}


class OutputClosed(Exception):
    """The program that read our output closed the pipe."""


@contextmanager
def detect_closed_output() -> Iterator[None]:
    """Turn a broken pipe into `OutputClosed` before click reports it as an error."""
    try:
        yield
    except BrokenPipeError:
        raise OutputClosed from None


def run_and_get_exit_code(run: Callable[[], object], *, as_json: bool) -> int:
    try:
        code = _run_with_packages(run)
    except PalaverError as error:
        print_error(error, as_json=as_json)
        return get_exit_code(error)
    except click.ClickException as error:
        _print_usage_error(error, as_json=as_json)
        return error.exit_code
    except click.Abort:
        if as_json:
            _print_error_parts("interrupted", "Interrupted.", {}, as_json=True)
        return INTERRUPTED_CODE
    except OutputClosed:
        _detach_stdout()
        return OUTPUT_CLOSED_CODE
    except OSError as error:  # the disk behind a redirection is full, the current folder was deleted
        _detach_stdout()
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        _print_error_parts("os_error", message, {"errno": error.errno}, as_json=as_json)
        return OTHER_ERROR_CODE
    return code if isinstance(code, int) else 0


def get_exit_code(error: PalaverError) -> int:
    return next(code for kind, code in EXIT_CODES if isinstance(error, kind))


def print_error(error: PalaverError, *, as_json: bool = False) -> None:
    _print_error_parts(error.code, str(error), error.facts, as_json=as_json)


def _run_with_packages(run: Callable[[], object]) -> object:
    """Run a command line; if a package is missing, raise an error that says how to install it.

    A missing module of our own is a bug and shows its traceback.
    """
    try:
        return run()
    except ModuleNotFoundError as error:
        module = (error.name or "palaver").partition(".")[0]
        if module == "palaver":
            raise
        extra = EXTRA_BY_MODULE.get(module)
        command = f"pip install 'palaver[{extra}]'" if extra else "pip install --force-reinstall palaver"
        raise ConfigError(
            f"The Python package {module!r} is not installed. Install it with: {command}", module=module
        ) from error


def _print_error_parts(code: str, message: str, facts: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        document = {"error": {"code": code, "message": message, "facts": dict(facts)}}
        click.echo(format_json(document, ascii_only=True), err=True)
        return
    first, *rest = clean_text(message).splitlines() or [""]
    click.echo("\n".join([f"error: {first}", *(f"  {line}" for line in rest)]), err=True)


def _print_usage_error(error: click.ClickException, *, as_json: bool) -> None:
    if isinstance(error, NoArgsIsHelpError) and not as_json:
        click.echo(error.format_message(), err=True)
        return
    message = "Missing command." if isinstance(error, NoArgsIsHelpError) else error.format_message()
    _print_error_parts("usage", message, {}, as_json=as_json)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None and not as_json:
        click.echo(f"{context.get_usage()}\nTry '{context.command_path} --help'.", err=True)


def _detach_stdout() -> None:
    """Point stdout at the null device, so that Python does not fail again when it flushes at exit."""
    if sys.stdout is not None:
        with suppress(OSError):  # a stdout without a file descriptor needs nothing
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
