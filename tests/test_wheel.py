"""The wheel contains the web page, the migrations and the update notes."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"


def test_the_wheel_contains_the_page_with_its_assets_and_the_migrations(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name.removeprefix("palaver/web/static/") for name in archive.namelist()}
        page = archive.read("palaver/web/static/index.html").decode()
    assets = {part.split('"')[0].removeprefix("./") for part in page.split('="./')[1:]}
    assert assets
    assert assets <= files
    assert "palaver/core/migrations/0001_initial.sql" in files
    assert "palaver/CHANGELOG.md" in files
