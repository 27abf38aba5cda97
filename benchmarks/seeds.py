"""Filled stores: made once, kept, and copied before every measurement.

A store in files is a folder that is copied; one on a server is a database that serves as template. Both are
named after a fingerprint of everything that decides what is in them, the schema included, so that a change
makes them anew. The copy that is measured always has the same path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks import drivers
from benchmarks.places import LIVE, SEEDS
from benchmarks.servers import PREFIX

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.servers import Postgres

    class Fill(Protocol):
        """Runs the seed of a driver on an empty store."""

        def __call__(self, driver: str, root: Path, shape: str, size: int, address: str) -> dict[str, Any]: ...


class SeedFailed(Exception):  # noqa: N818
    """A store could not be filled."""


@dataclass(frozen=True)
class Ready:
    """A store to measure."""

    root: Path
    address: str  # of its database, where it is on a server
    mib: float


def prepare(driver: str, shape: str, size: int, server: Postgres, fill: Fill) -> Ready:
    """A fresh copy of the store that this driver is measured on."""
    cls = drivers.load(driver)
    seed = _Seed(cls.seeds or driver, shape, size)
    root = LIVE / driver
    _remove(root)
    root.mkdir(parents=True)
    if cls.server:
        return _on_server(seed, root, server, fill)
    return _in_files(seed, root, fill)


@dataclass(frozen=True)
class _Seed:
    """A filled store: who fills it, with what."""

    driver: str
    shape: str
    size: int

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return SEEDS / self.driver / f"{self.shape}-{self.size}-{drivers.fingerprint(self.driver)}"

    @property
    def note(self) -> Path:
        """Written when it is complete."""
        return self.folder / "seed.json"

    @property
    def mib(self) -> float:
        """Its size."""
        found: float = json.loads(self.note.read_text())["mib"]
        return found

    def make(self, fill: Fill, root: Path, address: str = "") -> dict[str, Any]:
        """Fill the empty store in `root`, or at the address."""
        print(f"# filling {self.driver} {self.shape} {self.size:,}", file=sys.stderr, flush=True)
        made = fill(self.driver, root, self.shape, self.size, address)
        if "error" in made:
            _remove(root)
            raise SeedFailed(f"filling {self.driver}: {made['error']}")
        return made

    def keep(self, made: dict[str, Any]) -> None:
        """Note that it is complete."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.note.write_text(json.dumps(made))

    def forget_older(self) -> None:
        """Remove what was made for the same shape and size by an earlier fingerprint."""
        if self.folder.parent.is_dir():
            for old in self.folder.parent.glob(f"{self.shape}-{self.size}-*"):
                _remove(old)


def _in_files(seed: _Seed, root: Path, fill: Fill) -> Ready:
    if not seed.note.exists():
        seed.forget_older()
        made = seed.make(fill, root)
        _copy(root, seed.folder / "store")
        seed.keep(made)
    _copy(seed.folder / "store", root)
    os.sync()
    return Ready(root, "", seed.mib)


def _on_server(seed: _Seed, root: Path, server: Postgres, fill: Fill) -> Ready:
    live = f"{PREFIX}live"
    kind = f"{PREFIX}{seed.driver}_{seed.shape}_{seed.size}_"
    template = kind + drivers.fingerprint(seed.driver)
    if not seed.note.exists() or not server.has(template):
        seed.forget_older()
        server.forget(kind)
        server.create(live)
        made = seed.make(fill, root, server.address(live))
        server.rename(live, template)
        seed.keep(made)
    server.create(live, like=template)
    return Ready(root, server.address(live), seed.mib)


def discard(ready: Ready) -> None:
    """Throw the measured copy away."""
    _remove(ready.root)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove(target)
    subprocess.run(["cp", "-rp", str(source), str(target)], check=True)


def _remove(path: Path) -> None:
    subprocess.run(["rm", "-rf", str(path)], check=True)
