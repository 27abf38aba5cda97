"""`kill -9` during a backup, a restore and a migration: run again, the result is the same as without."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any, Self

import apsw
import pytest

from conftest import create_sqlite_database, empty_database
from palaver import SessionSource, SessionStore
from palaver.core.engines import postgres_connection
from palaver.core.errors import StoreUnavailable
from palaver.operation.backups import list_backups, verify_backup
from scenarios.store_harness import find_inconsistencies, wait_for_disconnect
from support.crashing import list_crash_points
from support.store_content import dump_tables, fill_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("new_connections")]

KILLED = -9
BACKUP_POINTS = (
    ("backup.before_copy", 1),
    *(("backup.step", number) for number in (1, 2)),
    *(("backup.copied", 1), ("backup.files_linked", 1), ("backup.before_name", 1), ("backup.named", 1)),
)
RESTORE_POINTS = (
    "restore.copied",
    "restore.files_linked",
    "restore.old_kept",
    "restore.before_swap",
    "restore.swapped",
)
DAMAGED_RESTORE_POINTS = ("restore.marked", "restore.log_removed", *RESTORE_POINTS)
DAMAGE_POINTS = {"restore.marked", "restore.log_removed", "restore.before_swap"}  # where damage makes a difference
MIGRATE_POINTS = (
    ("migrate.started", 1),
    *(("migrate.before_batch", 12), ("migrate.batch_copied", 1), ("migrate.batch_copied", 40)),
    *(("migrate.rows_copied", 1), ("migrate.before_end", 1), ("migrate.ended", 1)),
)


class CommandProcess:
    """Runs `palaver` commands that may kill themselves."""

    def __init__(self, launcher: WarmLauncher, folder: Path) -> None:
        self._journal = folder / "journal"
        script = Path(__file__).with_name("backup_process.py")
        self._process = launcher.launch_script(script, stderr=2)

    def run(self, *args: object, crash_at: str | None = None, crash_number: int = 1) -> int:
        self._journal.unlink(missing_ok=True)
        request = {"args": list(map(str, args)), "crash_at": crash_at, "crash_number": crash_number}
        self._process.stdin.write(json.dumps(request | {"journal": str(self._journal)}) + "\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline()))

    @property
    def passed(self) -> list[str]:
        """The crash points that the last command has passed."""
        return self._journal.read_text().splitlines()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            pipe.close()


@pytest.fixture(scope="module")
def process(launcher: WarmLauncher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandProcess]:
    with CommandProcess(launcher, tmp_path_factory.mktemp("process")) as started:
        yield started


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with a store that has an attachment, large enough for several steps of a copy."""
    home = tmp_path_factory.mktemp("filled") / "home"
    home.mkdir()
    with SessionStore.open(create_sqlite_database(home)) as store:
        fill_store(store, home / "attachments", count=30)
        session_id = store.list_sessions()[0].id
        for number in range(20):
            store.append_to_transcript(session_id, [f"{number} " + "long " * 20_000])
    return home


@pytest.fixture
def home(filled_home: Path, tmp_path: Path) -> Path:
    """A copy of the home folder for one test."""
    return copytree(filled_home, tmp_path / "home")


def load_tables(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    with SessionStore.open(home / "palaver.db") as store:
        return dump_tables(store)


def without_times(tables: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """Leave out when open work was ended by the restore: that differs from run to run."""
    return {name: rows for name, rows in tables.items() if name not in {"turn", "delivery", "delivery_part"}}


def list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_tables_have_every_crash_point() -> None:
    points = list_crash_points("backup.", "restore.", "migrate.")
    tested = {name for name, _ in (*BACKUP_POINTS, *MIGRATE_POINTS)} | set(DAMAGED_RESTORE_POINTS)
    assert tested == points


@pytest.mark.parametrize(("point", "number"), BACKUP_POINTS)
def test_a_backup_that_was_killed_leaves_nothing_behind(
    process: CommandProcess, home: Path, point: str, number: int
) -> None:
    before = load_tables(home)
    assert process.run("--home", home, "backup", crash_at=point, crash_number=number) == KILLED
    assert len(list_backups(home / "palaver.db")) == (1 if point == "backup.named" else 0)
    assert load_tables(home) == before
    assert process.run("--home", home, "backup") == 0
    made = list_backups(home / "palaver.db")[0]
    verify_backup(made)
    assert list_files(made.path)[1:] == ["backup.json", "palaver.db"]
    assert list_files(made.path)[0].startswith("attachments/")
    assert not list((home / "backups").glob(".*")), "what the killed process left is deleted"
    with SessionStore.open(f"{home}/other/palaver.db"):
        pass
    assert load_tables(home) == before


@pytest.fixture(scope="module")
def filled_later_home(process: CommandProcess, filled_home: Path) -> Path:
    """The home folder after a backup and further messages; the attachment is lost."""
    home = copytree(filled_home, filled_home.with_name("later"))
    assert process.run("--home", home, "backup") == 0
    with SessionStore.open(home / "palaver.db") as store:
        store.record_user_message(SessionSource("telegram", "ada", user_id="ada"), "after the backup")
    for path in (home / "attachments").rglob("*"):
        if path.is_file():
            path.unlink()
    return home


@pytest.fixture
def later_home(filled_later_home: Path, tmp_path: Path) -> Path:
    return copytree(filled_later_home, tmp_path / "home")


def get_backup(home: Path) -> Path:
    return list_backups(home / "palaver.db")[0].path


@pytest.mark.parametrize("point", RESTORE_POINTS)
def test_a_restore_that_was_killed_leaves_the_old_store_or_the_new_one(
    process: CommandProcess, later_home: Path, point: str
) -> None:
    home, backup = later_home, get_backup(later_home)
    old = without_times(load_tables(home))
    assert process.run("--home", home, "restore", backup, "--yes", crash_at=point) == KILLED
    killed = without_times(load_tables(home))
    assert process.run("--home", home, "restore", backup, "--yes") == 0
    new = without_times(load_tables(home))
    assert killed == (new if point == "restore.swapped" else old)
    assert new != old
    assert find_inconsistencies(f"sqlite:///{home}/palaver.db") == []
    [kept] = [path for path in home.glob("palaver.db.before-restore-*") if without_times(load_copy(path)) == old]
    assert kept.exists()
    assert [path for path in (home / "attachments").rglob("*") if path.is_file()], "the attachment is back"
    assert not (home / ".palaver-restore").exists()


def load_copy(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with SessionStore.open(path) as store:
        return dump_tables(store)


def damage(path: Path) -> None:
    """Overwrite the schema of a database, as a broken disk would, and leave a log beside it."""
    with closing(apsw.Connection(str(path))) as db:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.execute("INSERT INTO named_lease VALUES ('x', 'h/1/2/w', 1)")
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xa5" * 3996 + data[4096:])


@pytest.mark.parametrize(
    "point",
    [pytest.param(point, marks=() if point in DAMAGE_POINTS else pytest.mark.soak) for point in DAMAGED_RESTORE_POINTS],
)
def test_a_restore_of_a_damaged_database_can_be_repeated(process: CommandProcess, later_home: Path, point: str) -> None:
    home, backup = later_home, get_backup(later_home)
    database = home / "palaver.db"
    damage(database)
    damaged = database.read_bytes()
    log = (home / "palaver.db-wal").read_bytes()
    assert log
    assert process.run("--home", home, "restore", backup, "--yes", crash_at=point) == KILLED
    if point in {"restore.marked", "restore.log_removed", "restore.before_swap", "restore.swapped"}:
        with pytest.raises(StoreUnavailable, match="restore"):
            SessionStore.open(database)
    if point != "restore.swapped":
        assert database.read_bytes() == damaged
    assert process.run("--home", home, "restore", backup, "--yes") == 0
    kept = sorted(home.glob("palaver.db.before-restore-*"))
    assert damaged in [path.read_bytes() for path in kept]
    assert log in [path.read_bytes() for path in kept]
    assert find_inconsistencies(f"sqlite:///{database}") == []
    assert len(load_tables(home)["session"]) > 3


@pytest.mark.parametrize(("point", "number"), MIGRATE_POINTS)
def test_a_migration_that_was_killed_goes_on(
    process: CommandProcess, home: Path, postgres_database: str, point: str, number: int
) -> None:
    before, server_url = load_tables(home), empty_database(postgres_database)
    args = ("--home", home, "migrate", home / "palaver.db", server_url)
    try:
        assert process.run(*args, crash_at=point, crash_number=number) == KILLED
        wait_for_disconnect(server_url)
        if point == "migrate.ended":
            assert process.run(*args) != 0, "the target is a complete store now"
        else:
            with pytest.raises(StoreUnavailable):
                SessionStore.open(server_url)
            assert process.run(*args) == 0
        with SessionStore.open(server_url) as store:
            assert dump_tables(store) == before
        assert find_inconsistencies(server_url) == []
        assert load_tables(home) == before
    finally:
        drop_unfinished_copy(server_url)


def drop_unfinished_copy(url: str) -> None:
    """Leave the database to the next test as an ordinary one, also if this one has failed."""
    with postgres_connection.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS store_copy")
        connection.execute("DELETE FROM migration WHERE name = 'copy_unfinished'")
