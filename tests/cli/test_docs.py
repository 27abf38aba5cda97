"""docs/reference/cli.md tells of every command, every option and every exit code, and of nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from palaver.cli import errors, program

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text(encoding="utf-8")


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, f"{path} {name}")


EVERY = dict(commands(program, "palaver"))
SECTIONS = {
    match[1]: match[2]
    for match in re.finditer(r"^##+ `(palaver[^`]*)`\n(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL)
}


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    assert sorted(SECTIONS) == sorted(EVERY)


@pytest.mark.parametrize("path", EVERY)
def test_every_option_and_argument_is_described_in_its_section(path: str) -> None:
    section = SECTIONS[path]
    for parameter in EVERY[path].params:
        names = [parameter.make_metavar(click.Context(EVERY[path])).strip("[].")]
        if isinstance(parameter, click.Option):
            names = [*parameter.opts, *parameter.secondary_opts]
        for name in names:
            assert f"`{name}" in section, f"{path}: {name} is not described"


@pytest.mark.parametrize("path", [path for path, command in EVERY.items() if not isinstance(command, click.Group)])
def test_every_command_has_an_example(path: str) -> None:
    assert f"$ {path}" in SECTIONS[path]


@pytest.mark.parametrize("path", EVERY)
def test_no_option_is_described_that_does_not_exist(path: str) -> None:
    known = {name for parameter in EVERY[path].params for name in parameter.opts} | {"--help"}
    described = {name.split()[0] for name in re.findall(r"^\| `(-[^`]*)`", SECTIONS[path], re.MULTILINE)}
    assert described <= known


def test_every_exit_code_is_documented() -> None:
    codes = {0, 2, errors.INTERRUPTED, errors.READER_LEFT, *(code for _, code in errors.EXIT_CODES)}
    table = {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}
    assert table == codes
