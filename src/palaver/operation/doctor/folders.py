"""The home folder and what is in it: owner, permissions, free space, attached files, backups."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from palaver.core.engines.base import Read
from palaver.core.engines.schema_state import get_sqlite_path, load_schema_state
from palaver.core.engines.sqlite_file import list_backup_paths, refuse_lost_file
from palaver.core.errors import PalaverError, SchemaTooNew, StoreDamaged
from palaver.core.files import get_free_bytes
from palaver.core.texts import join_texts, say
from palaver.delivery.health import load_health
from palaver.delivery.model import STATE_LABELS, AccountHealth, AccountState
from palaver.operation import invariants
from palaver.operation.doctor.finding import Finding, FindingCode, FixCommands, make_ok, make_problem, make_warning
from palaver.operation.integrity_check import check_integrity
from palaver.settings.live_settings import probe_account

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.sessions.store import SessionStore


log = logging.getLogger(__name__)

MIN_FREE_BYTES: Final = 200_000_000
MAX_BACKUP_AGE: Final = timedelta(days=7)
MAX_CHECKED_FILES: Final = 2000
_PRIVATE_FILES: Final = ("config.yaml", "install.secret", "*.db", "*.db-wal", "*.key", "*.secret")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_CHECK_ADDRESS: Final = "Check `database_url` in config.yaml, and that the file or server can be reached."
PROBE_SECONDS: Final = 20.0
_BAD_STATES: Final = frozenset({AccountState.REFUSED, AccountState.UNRESPONSIVE})


def check_home(home: Path) -> Iterator[Finding]:
    path = shlex.quote(str(home))
    if not home.exists():
        yield make_ok(FindingCode.HOME_MISSING, folder=home)
        return
    if not home.is_dir():
        yield make_problem(FindingCode.HOME_NOT_FOLDER, folder=home, command=f"mv {path} {path}.old")
        return
    if home.stat().st_uid != os.geteuid():
        yield make_problem(FindingCode.HOME_OF_OTHER_USER, folder=home, command=f"sudo chown -R $(id -un) {path}")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield make_problem(FindingCode.HOME_NOT_WRITABLE, folder=home, command=f"chmod u+rwx {path}")
        return
    private = sorted({path for pattern in _PRIVATE_FILES for path in home.glob(pattern) if path.is_file()})
    open_paths = [path for path in (home, *private) if path.stat().st_mode & _OTHERS]
    if open_paths:
        fixes = [f"chmod {'700' if each.is_dir() else '600'} {shlex.quote(str(each))}" for each in open_paths]
        names = ", ".join(each.name if each != home else str(home) for each in open_paths)
        yield make_warning(FindingCode.HOME_READABLE, files=names, command=" && ".join(fixes))
    else:
        yield make_ok(FindingCode.HOME_PRIVATE, folder=home)


def check_disk(home: Path, database: Path | None) -> Iterator[Finding]:
    """Compare the free space with the size of the database, of which a backup or an upgrade needs as much again."""
    free = get_free_bytes(home)
    size = 0 if database is None or not database.is_file() else database.stat().st_size
    facts = {"free": _format_bytes(free), "size": _format_bytes(size), "folder": home}
    if free < MIN_FREE_BYTES:
        yield make_problem(FindingCode.DISK_FULL, **facts)
    elif free < 2 * size:
        yield make_warning(FindingCode.DISK_SMALL, **facts)
    else:
        yield make_ok(FindingCode.DISK, **facts)


def check_backups(database: Path, now: datetime, commands: FixCommands) -> Iterator[Finding]:
    if not database.is_file():
        return
    command = commands.format("backup")
    newest = next(iter(list_backup_paths(database.parent / "backups")), None)
    if newest is None:
        yield make_warning(FindingCode.BACKUP_MISSING, command=command)
        return
    made_at = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
    facts = {"date": made_at.date(), "name": newest.name}
    if now - made_at > MAX_BACKUP_AGE:
        yield make_warning(FindingCode.BACKUP_OLD, command=command, **facts)
    else:
        yield make_ok(FindingCode.BACKUP, **facts)


def check_attachments(store: SessionStore, folder: Path, commands: FixCommands) -> Iterator[Finding]:
    """Check whether the oldest attached files are in place. The complete check of the database looks at all of them."""
    files = store.engine.run(Read(lambda tx: invariants.list_files(tx, 0, MAX_CHECKED_FILES)))
    missing = [file for file in files if not (folder / file.sha256[:2] / file.sha256).is_file()]
    checked = f"{len(files)}+" if len(files) == MAX_CHECKED_FILES else str(len(files))
    if missing:
        yield make_problem(
            FindingCode.FILES_MISSING,
            count=len(missing),
            checked=checked,
            folder=folder,
            example=missing[0].id,
            command=commands.format("restore BACKUP"),
        )
    else:
        yield make_ok(FindingCode.FILES, checked=checked)


def _format_bytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def check_database(url: str, commands: FixCommands) -> tuple[bool, list[Finding]]:
    """Return whether a database can be opened without changing it, and what was found."""
    path = get_sqlite_path(url)
    try:
        if path is not None:
            refuse_lost_file(path)
        if path is not None and not path.exists():
            return False, [make_ok(FindingCode.DATABASE_MISSING, path=path)]
        state = load_schema_state(url)
    except ModuleNotFoundError:
        return False, [make_problem(FindingCode.DATABASE_DRIVER_MISSING)]
    except PalaverError as error:
        return False, [_describe_error(error, commands)]
    name = "PostgreSQL" if path is None else str(path)
    if state.pending:
        return False, [
            make_warning(
                FindingCode.DATABASE_OLD,
                name=name,
                migrations=", ".join(state.pending),
                backup=commands.format("backup"),
                serve=commands.format("serve"),
            )
        ]
    server = f" ({state.server})" if state.server else ""
    return True, [make_ok(FindingCode.DATABASE, name=name, server=server)]


def _describe_error(error: PalaverError, commands: FixCommands) -> Finding:
    text, *advice = str(error).splitlines()
    if not advice and isinstance(error, SchemaTooNew):
        return make_problem(FindingCode.DATABASE_TOO_NEW, problem=text)
    if not advice and isinstance(error, StoreDamaged):
        return make_problem(FindingCode.DATABASE_DAMAGED, problem=text, command=commands.format("restore BACKUP"))
    return make_problem(FindingCode.DATABASE_ERROR, problem=text, advice=" ".join(advice) or _CHECK_ADDRESS)


def check_everything(store: SessionStore, attachments: Path, commands: FixCommands) -> Iterator[Finding]:
    """Read the whole database, and compare what it says with itself and with the attached files."""
    for result in check_integrity(store, attachments):
        if result.is_ok:
            yield make_ok(FindingCode.INTEGRITY_OK, subject=result.title)
        else:
            yield make_problem(
                FindingCode.INTEGRITY_REPAIRABLE if result.is_repairable else FindingCode.INTEGRITY_PROBLEM,
                subject=result.title,
                count=result.problem_count,
                problems="; ".join(result.problems[:3]),
                command=commands.format("doctor --repair" if result.is_repairable else "restore BACKUP"),
            )


def check_accounts(
    store: SessionStore, accounts: Sequence[ConfiguredAccount], commands: FixCommands, *, probes: bool
) -> Iterator[Finding]:
    """Check the accounts that are set up. With `probes`, those that no server runs sign in once."""
    if not accounts:
        yield make_ok(FindingCode.PLATFORMS_NONE)
        return
    health = {(each.platform, each.account): each for each in load_health(store, [each.key for each in accounts])}
    for account in accounts:
        status = health.get(account.key)
        subject = status.label if status is not None else str(account.platform)
        if account.problem is not None:
            yield make_problem(
                FindingCode.ACCOUNT_PROBLEM,
                subject=subject,
                problem=account.problem,
                command=commands.format("platforms"),
            )
        elif status is not None and status.status is not None and status.status.state is not AccountState.OFF:
            yield from _describe_running(subject, status, account, commands)
        elif probes:
            yield asyncio.run(_probe(subject, account))
        else:
            yield make_ok(FindingCode.ACCOUNT_IDLE, subject=subject)


def _describe_running(
    subject: str, health: AccountHealth, account: ConfiguredAccount, commands: FixCommands
) -> Iterator[Finding]:
    status = health.status
    assert status is not None  # noqa: S101  (the caller has checked it)
    error = account.hide_secrets(status.error or "")
    words, command = STATE_LABELS[status.state], commands.format("platforms")
    if status.state in _BAD_STATES:
        yield make_problem(
            FindingCode.ACCOUNT_FAILED,
            subject=subject,
            state=words,
            problem=error or say("operation.no_error_reported", "no error was reported"),
            command=commands.format("platforms test"),
        )
    else:
        yield make_ok(FindingCode.ACCOUNT_RUNS, subject=subject, state=words, details=_join(status.details))
    for warning in status.warnings:
        yield make_warning(
            FindingCode.ACCOUNT_WARNING, subject=subject, problem=account.hide_secrets(warning), command=command
        )
    if health.failed or health.uncertain:
        yield make_warning(
            FindingCode.DELIVERIES_FAILED,
            subject=subject,
            failed=health.failed,
            uncertain=health.uncertain,
            command=commands.format("deliveries"),
        )


def _join(details: Sequence[str]) -> str:
    return join_texts("", [part for detail in details for part in (". ", detail)])


async def _probe(subject: str, account: ConfiguredAccount) -> Finding:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            info = await probe_account(account)
    except PalaverError as error:
        return make_problem(FindingCode.SIGN_IN_FAILED, subject=subject, problem=account.hide_secrets(error.text))
    except TimeoutError:
        return make_problem(FindingCode.SIGN_IN_TOO_SLOW, subject=subject, seconds=f"{PROBE_SECONDS:.0f}")
    except Exception as error:  # an SDK may raise anything, and the other checks go on
        log.debug("doctor_sign_in_failed", exc_info=True, extra={"platform": account.platform})
        text = account.hide_secrets(f"{type(error).__name__}: {error}")
        return make_problem(FindingCode.SIGN_IN_ERROR, subject=subject, problem=text[:300])
    if info.warnings:
        problem = account.hide_secrets(join_texts(" ", info.warnings))
        return make_warning(FindingCode.SIGN_IN_WARNING, subject=subject, name=info.name, problem=problem)
    name = info.name or info.user_id
    return make_ok(FindingCode.SIGN_IN, subject=subject, name=name, details=_join(info.details))
