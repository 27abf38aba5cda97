"""What the documentation says is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import palaver

ROOT = Path(__file__).parent.parent
OTHERS = {"node_modules", ".venv"}
PAGES = sorted(page for page in ROOT.glob("**/*.md") if not OTHERS & {*page.relative_to(ROOT).parts})
EXAMPLES = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("code", EXAMPLES)
def test_every_python_example_runs(code: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    expected = re.findall(r"^.*# → (.*)$", code, re.MULTILINE)
    assert [line for line in expected if line not in ran.stdout] == []


def test_the_public_names_are_the_ones_promised() -> None:
    for name in palaver.__all__:
        assert getattr(palaver, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = palaver.nothing_like_this


def test_the_changelog_knows_this_version_or_is_ahead_of_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## Unreleased" in text or f"## {palaver.__version__}" in text
