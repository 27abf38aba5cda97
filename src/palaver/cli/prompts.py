"""`palaver prompts`: texts with placeholders that a person saves to send them again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from palaver.cli import options as lookup, output
from palaver.cli.options import NounGroup, confirm_or_exit, open_view, yes_option
from palaver.cli.output import Column
from palaver.core.errors import InvalidInput, NotFound
from palaver.core.invocation import format_command
from palaver.core.wire import build_json
from palaver.prompts.model import MAX_PROMPT_CHARS, PROMPT_FIELDS, SavedPrompt, SavedPromptJson
from palaver.prompts.service import SavedPromptOperations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from palaver.sessions.view import SessionView

_COLUMNS: tuple[Column[SavedPrompt], ...] = (
    Column("NAME", lambda each: each.name),
    Column("CHANGED", lambda each: each.updated_at),
    Column("TEXT", lambda each: each.text, fills_width=True),
)
_READ_INPUT = "-"  # in place of a text: read it from standard input


@click.group(cls=NounGroup)
def prompts() -> None:
    """Manage your saved prompts.

    They are offered in the message box of the page, where each {{word}} in them is a placeholder to fill in.
    """


@prompts.command("list")
def list_prompts() -> None:
    """List your saved prompts by name."""
    with open_view() as view:
        found = view.part(SavedPromptOperations).list()
    document = {"prompts": [build_json(SavedPromptJson, prompt) for prompt in found]}
    empty = f"No saved prompts yet. Add one with `{format_command('prompts add NAME TEXT')}`."
    output.print_list(document, _COLUMNS, found, empty)


@prompts.command()
@click.argument("prompt")
def show(prompt: str) -> None:
    """Print the text of a saved prompt.

    PROMPT is its name or id.
    """
    with open_view() as view:
        found = _find_prompt(view, prompt)
    _print_prompt("prompt", found, output.clean_text(found.text))


def _add_field_options(names: Iterable[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed([*names]):
            command = click.option(f"--{name}", metavar=name.upper(), help=PROMPT_FIELDS[name].help)(command)
        return command

    return decorate


@prompts.command()
@click.argument("name")
@click.argument("text")
@_add_field_options(name for name, declared in PROMPT_FIELDS.items() if not declared.is_required)
def add(name: str, text: str, **others: str | None) -> None:
    """Save a prompt.

    {{word}} in TEXT is a placeholder; - reads the text from standard input.
    """
    with open_view() as view:
        saved = view.part(SavedPromptOperations).create(name, _read_text(text), **others)
    _print_prompt("prompt", saved, f"Saved the prompt {lookup.quote(saved.name)}.")


@prompts.command()
@click.argument("prompt")
@_add_field_options(PROMPT_FIELDS)
def edit(prompt: str, **fields: str | None) -> None:
    """Change a saved prompt.

    PROMPT is its name or id.
    """
    given = {
        field: _read_text(value) if field == "text" else value for field, value in fields.items() if value is not None
    }
    if not given:
        raise click.UsageError(f"Nothing to change. Use {' or '.join(f'--{field}' for field in PROMPT_FIELDS)}.")
    with open_view() as view:
        saved = view.part(SavedPromptOperations).update(_find_prompt(view, prompt).id, **given)
    _print_prompt("prompt", saved, f"Changed the prompt {lookup.quote(saved.name)}.")


@prompts.command()
@click.argument("prompt")
@yes_option
def remove(prompt: str, yes: bool) -> None:
    """Delete a saved prompt.

    PROMPT is its name or id. Asks for confirmation first.
    """
    with open_view() as view:
        found = _find_prompt(view, prompt)
        confirm_or_exit(f"Delete the prompt {lookup.quote(found.name)}?", skip=yes)
        deleted = view.part(SavedPromptOperations).delete(found.id)
    _print_prompt("deleted", deleted, f"Deleted the prompt {lookup.quote(deleted.name)}.")


def _find_prompt(view: SessionView, text: str) -> SavedPrompt:
    found = view.part(SavedPromptOperations).list()
    for prompt in found:
        if prompt.id == text or prompt.name.casefold() == text.strip().casefold():
            return prompt
    similar = lookup.find_similar_names(text, [prompt.name for prompt in found])
    hint = lookup.format_suggestions(map(lookup.quote, similar)) or f"See `{format_command('prompts list')}`."
    raise NotFound(f"No saved prompt has the name or id {lookup.quote(text)}. {hint}", prompt=text)


def _read_text(text: str) -> str:
    if text != _READ_INPUT:
        return text
    read = sys.stdin.read(MAX_PROMPT_CHARS + 2)  # one more than allowed, and the last line break
    if not read.strip():
        raise InvalidInput("text: standard input is empty. Write the text there, or in place of the -.", key="text")
    return read


def _print_prompt(key: str, prompt: SavedPrompt, text: str) -> None:
    output.print_result({key: build_json(SavedPromptJson, prompt)}, text)
