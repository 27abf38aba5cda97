"""The documentation is true: links resolve, examples run, and the public names and the changelog are complete."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import palaver

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent


def find_pages() -> Iterator[Path]:
    """Find the pages of the documentation without looking into the thousands of folders of packages."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name != "node_modules" and not name.startswith(".")]
        yield from (Path(folder) / name for name in files if name.endswith(".md"))


PAGES = sorted(find_pages())
# Code that cannot run on its own is fenced as `py` instead of `python`.
EXAMPLES = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]
PUBLIC_NAMES = {
    *("SessionStore", "SessionView", "SessionSource", "SessionEntry", "Session", "Message", "Event", "TurnUsage"),
    *("SessionContext", "build_session_context", "build_session_context_prompt", "build_session_key", "title_from"),
    *("Platform", "HomeChannel", "ResetPolicy", "GatewayConfig", "Principal", "Role", "Clock", "PalaverError"),
}


def test_the_tests_on_the_page_about_security_exist() -> None:
    page = (ROOT / "docs/security.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page)
    assert len(named) > 50
    texts = {path: (ROOT / path).read_text() if (ROOT / path).exists() else "" for path, _ in named}
    assert [(path, name) for path, name in named if f"def {name}" not in texts[path]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_resolve(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_tables_of_what_works_where_are_up_to_date() -> None:
    command = [sys.executable, "-m", "docs.platform_table", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("code", EXAMPLES)
def test_python_examples_run_and_print_what_they_claim(code: str, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    expected = re.findall(r"^.*# → (.*)$", code, re.MULTILINE)
    assert [line for line in expected if line not in result.stdout] == []


def test_the_library_exports_exactly_the_documented_names() -> None:
    assert {*palaver.__all__} == {"__version__", *PUBLIC_NAMES}
    guide = (ROOT / "docs/guides/library.md").read_text()
    assert [name for name in sorted(PUBLIC_NAMES) if not re.search(rf"\b{name}\b", guide)] == []


@pytest.mark.parametrize("name", sorted(PUBLIC_NAMES))
def test_a_public_name_is_imported_on_first_use(name: str) -> None:
    assert getattr(palaver, name).__name__ == name


def test_type_checkers_see_the_same_public_names_from_the_same_modules() -> None:
    """`__init__.py` lists each name twice: in the table for imports at run time, and in the block for type checkers."""
    tree = ast.parse(Path(palaver.__file__).read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    imports = {
        alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imports == {name: f"palaver.{module}" for name, module in palaver._PUBLIC_NAMES.items()}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = palaver.nothing_like_this


def test_the_changelog_covers_this_version() -> None:
    """Sections go from new to old; changes since the last release are in `Unreleased`, which then comes first."""
    _, *parts = re.split(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert sections, "there are no sections"
    assert len(sections) == len(parts) / 2, "a section is there twice"
    assert [name for name, text in sections.items() if not re.search(r"^- ", text, re.MULTILINE)] == []
    versions = [name for name in sections if name != "Unreleased"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", version) for version in versions), versions
    numbers = [tuple(map(int, version.split(" ")[0].split("."))) for version in versions]
    assert all(newer > older for newer, older in pairwise(numbers))
    current = tuple(map(int, re.findall(r"\d+", palaver.__version__)))
    assert all(number <= current for number in numbers)
    assert next(iter(sections)) == "Unreleased" or numbers[0] == current
