"""Signing in: with an access token, or once with a password.

The token and the device that a password has brought are kept in the account's folder, in a file that only its owner can
read. The device stays the same over restarts, because its encryption keys belong to it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.errors import AccountRefused
from palaver.core.files import write_file_atomically
from palaver.platforms.matrix.client import API, MatrixClient, RequestRefused
from palaver.platforms.matrix.inbound import read_text

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.platforms.matrix.manifest import MatrixSettings

FILE_NAME = "sign-in.json"


@dataclass(frozen=True, slots=True)
class _StoredSignIn:
    homeserver: str
    user_id: str
    device_id: str
    access_token: str


async def sign_in(client: MatrixClient, settings: MatrixSettings, folder: Path) -> None:
    """Give the client a token that works, with its user and device.

    Raises AccountRefused if the homeserver does not accept what is set up.
    """
    if settings.access_token is not None:
        client.access_token = settings.access_token.get_secret_value()
        await _check_token(client, settings)
        return
    stored = _load(folder, settings)
    device_id = None
    if stored is not None:
        client.access_token = stored.access_token
        try:
            await _check_token(client, settings)
            return
        except RequestRefused as error:
            if not error.is_bad_token:
                raise
            # Only after a soft logout does the device still exist; a new one gets its own keys.
            device_id = stored.device_id if error.is_soft_logout else None
    await _log_in(client, settings, folder, device_id)


async def _check_token(client: MatrixClient, settings: MatrixSettings) -> None:
    answer = await client.request("GET", f"{API}/account/whoami")  # the user and the device that the token belongs to
    user_id = read_text(answer.get("user_id")) or ""
    if settings.user_id is not None and settings.user_id != user_id:
        raise AccountRefused.say(
            "matrix.token_of_other_user",
            "The access token belongs to {owner}, but user_id is {user}. Correct one of the two.",
            owner=user_id,
            user=settings.user_id,
        )
    client.user_id, client.device_id = user_id, read_text(answer.get("device_id"))


async def _log_in(client: MatrixClient, settings: MatrixSettings, folder: Path, device_id: str | None) -> None:
    assert settings.user_id is not None  # noqa: S101
    assert settings.password is not None  # noqa: S101
    client.access_token = None
    try:
        answer = await client.log_in(
            settings.user_id,
            settings.password.get_secret_value(),
            device_name=settings.device_name,
            device_id=device_id,
        )
    except RequestRefused as error:
        if error.status in {401, 403}:
            raise AccountRefused.say(
                "matrix.password_refused",
                "The homeserver does not accept the password of {user}. Check user_id and password (or"
                " MATRIX_USER_ID and MATRIX_PASSWORD). It said: {reason}",
                user=settings.user_id,
                reason=error.explanation,
            ) from error
        raise
    stored = _StoredSignIn(
        settings.homeserver, str(answer["user_id"]), str(answer["device_id"]), str(answer["access_token"])
    )
    _save(folder, stored)
    client.access_token, client.user_id, client.device_id = stored.access_token, stored.user_id, stored.device_id


def _load(folder: Path, settings: MatrixSettings) -> _StoredSignIn | None:
    """Return the stored sign-in; None if there is none, or it belongs to another account."""
    try:
        stored = _StoredSignIn(**json.loads((folder / FILE_NAME).read_text("utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    is_same_account = (stored.homeserver, stored.user_id) == (settings.homeserver, settings.user_id)
    return stored if is_same_account else None


def _save(folder: Path, stored: _StoredSignIn) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_file_atomically(folder / FILE_NAME, json.dumps(asdict(stored)), overwrite=True)
