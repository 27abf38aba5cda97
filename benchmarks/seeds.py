"""Filled stores: each is filled once, cached, and copied before every measurement.

A store in files is a folder; a store on a server is a template database. The name of both contains a fingerprint of
everything that determines their content, including the schema: after a change, they are filled again. The measured copy
always has the same path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks import drivers
from benchmarks.paths import LIVE_DIR, SEEDS_DIR
from benchmarks.postgres_server import DATABASE_PREFIX

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.postgres_server import PostgresServer

    class FillStore(Protocol):
        """Lets a driver fill an empty store."""

        def __call__(self, driver: str, root: Path, shape: str, size: int, url: str) -> dict[str, Any]: ...


class SeedFailed(Exception):  # noqa: N818
    """A driver could not fill its store."""


@dataclass(frozen=True)
class PreparedStore:
    """A copy of a filled store, ready to be measured."""

    root: Path
    url: str  # of its database; empty: the store is in files
    mib: float


def prepare_store(driver: str, shape: str, size: int, server: PostgresServer, fill_store: FillStore) -> PreparedStore:
    """Make a new copy of the filled store of this driver."""
    driver_class = drivers.load(driver)
    seed = _Seed(driver_class.seed_driver or driver, shape, size)
    root = LIVE_DIR / driver
    _remove(root)
    root.mkdir(parents=True)
    if driver_class.server:
        return _prepare_database(seed, root, server, fill_store)
    return _prepare_files(seed, root, fill_store)


@dataclass(frozen=True)
class _Seed:
    """A filled store in the cache."""

    driver: str
    shape: str
    size: int

    @property
    def folder(self) -> Path:
        return SEEDS_DIR / self.driver / f"{self.shape}-{self.size}-{drivers.fingerprint(self.driver)}"

    @property
    def marker_file(self) -> Path:
        """Exists once the store is complete."""
        return self.folder / "seed.json"

    @property
    def mib(self) -> float:
        mib: float = json.loads(self.marker_file.read_text())["mib"]
        return mib

    def fill(self, fill_store: FillStore, root: Path, url: str = "") -> dict[str, Any]:
        """Fill the empty store in `root`, or in the database at the URL."""
        print(f"# filling {self.driver} {self.shape} {self.size:,}", file=sys.stderr, flush=True)
        summary = fill_store(self.driver, root, self.shape, self.size, url)
        if "error" in summary:
            _remove(root)
            raise SeedFailed(f"filling {self.driver}: {summary['error']}")
        return summary

    def mark_complete(self, summary: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.marker_file.write_text(json.dumps(summary))

    def remove_older(self) -> None:
        """Remove the cached stores of the same shape and size with another fingerprint."""
        if self.folder.parent.is_dir():
            for old in self.folder.parent.glob(f"{self.shape}-{self.size}-*"):
                _remove(old)


def _prepare_files(seed: _Seed, root: Path, fill_store: FillStore) -> PreparedStore:
    if not seed.marker_file.exists():
        seed.remove_older()
        summary = seed.fill(fill_store, root)
        _copy(root, seed.folder / "store")
        seed.mark_complete(summary)
    _copy(seed.folder / "store", root)
    os.sync()
    return PreparedStore(root, "", seed.mib)


def _prepare_database(seed: _Seed, root: Path, server: PostgresServer, fill_store: FillStore) -> PreparedStore:
    live_database = f"{DATABASE_PREFIX}live"
    name_prefix = f"{DATABASE_PREFIX}{seed.driver}_{seed.shape}_{seed.size}_"
    template = name_prefix + drivers.fingerprint(seed.driver)
    if not seed.marker_file.exists() or not server.has_database(template):
        seed.remove_older()
        server.drop_databases(name_prefix)
        server.create_database(live_database)
        summary = seed.fill(fill_store, root, server.build_url(live_database))
        server.rename_database(live_database, template)
        seed.mark_complete(summary)
    server.create_database(live_database, template=template)
    return PreparedStore(root, server.build_url(live_database), seed.mib)


def discard_store(store: PreparedStore) -> None:
    _remove(store.root)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove(target)
    subprocess.run(["cp", "-rp", str(source), str(target)], check=True)


def _remove(path: Path) -> None:
    subprocess.run(["rm", "-rf", str(path)], check=True)
