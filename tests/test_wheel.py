"""What is installed: a wheel with the page inside."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"


def test_a_wheel_holds_the_page_and_everything_it_asks_for(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        held = {name.removeprefix("palaver/web/static/") for name in files.namelist()}
        document = files.read("palaver/web/static/index.html").decode()
    asked_for = {part.split('"')[0].removeprefix("./") for part in document.split('="./')[1:]}
    assert asked_for
    assert asked_for <= held
    assert "palaver/storage/migrations/0001_sessions.sql" in held
