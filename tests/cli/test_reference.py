"""Tests that docs/reference/cli.md describes every command, option and exit code, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from palaver.cli import errors
from palaver.cli.program import program

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE_TEXT = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text(encoding="utf-8")


def iterate_commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            assert inner.name == name
            yield from iterate_commands(inner, f"{path} {name}")


def list_parameters(path: str) -> list[click.Parameter]:
    command = COMMANDS[path]
    return [each for each in command.get_params(click.Context(command)) if "--help" not in each.opts]


COMMANDS = dict(iterate_commands(program, "palaver"))
SECTIONS = {
    match[1]: match[2]
    for match in re.finditer(r"^##+ `(palaver[^`]*)`\n(.*?)(?=^#|\Z)", REFERENCE_TEXT, re.MULTILINE | re.DOTALL)
}


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    assert sorted(SECTIONS) == sorted(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_and_argument_is_described_in_its_section(path: str) -> None:
    section = SECTIONS[path]
    for parameter in list_parameters(path):
        names = [parameter.make_metavar(click.Context(COMMANDS[path])).strip("[].")]
        if isinstance(parameter, click.Option):
            names = [*parameter.opts, *parameter.secondary_opts]
        for name in names:
            assert f"`{name}" in section, f"{path}: {name} is not described"


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if not isinstance(command, click.Group)])
def test_every_command_has_an_example(path: str) -> None:
    assert f"$ {path}" in SECTIONS[path]


@pytest.mark.parametrize("path", COMMANDS)
def test_every_described_option_exists(path: str) -> None:
    known = {name for parameter in list_parameters(path) for name in parameter.opts} | {"--help"}
    described = {name.split()[0] for name in re.findall(r"^\| `(-[^`]*)`", SECTIONS[path], re.MULTILINE)}
    assert described <= known


def test_every_exit_code_is_documented() -> None:
    codes = {0, 2, errors.INTERRUPTED_CODE, errors.OUTPUT_CLOSED_CODE, *(code for _, code in errors.EXIT_CODES)}
    table = {int(code) for code in re.findall(r"^\| (\d+) \|", REFERENCE_TEXT, re.MULTILINE)}
    assert table == codes
