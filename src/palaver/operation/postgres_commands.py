"""The commands that back up and restore a PostgreSQL database, without its password: PostgreSQL's own tools do it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from pathlib import Path


def remove_password(url: str) -> str:
    """Return a database URL without its password, also where it is a parameter."""
    parts = urlsplit(url)
    user, separator, host = parts.netloc.rpartition("@")
    netloc = f"{user.partition(':')[0]}{separator}{host}"
    query = "&".join(each for each in parts.query.split("&") if not each.lower().startswith("password="))
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))


def format_dump_advice(url: str, home: Path) -> str:
    """Say how to back up a PostgreSQL database and its attachments."""
    address = shlex.quote(remove_password(url))
    return (
        "Palaver does not back up PostgreSQL itself. PostgreSQL's own tool does, also while a server is running:\n"
        f"pg_dump --format=custom --file=palaver.dump {address}\n"
        f"Also copy the folder {home / 'attachments'}. To restore, stop Palaver and run:\n"
        f"pg_restore --clean --if-exists --no-owner --dbname={address} palaver.dump\n"
        "See docs/guides/backup.md."
    )
