"""Reads which accounts are in a folder of signal-cli, without starting it.

signal-cli lists its accounts in `data/accounts.json`, and keeps each in a file of its own. Only what names the account
is read, never a key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from palaver.core.errors import AccountRefused

if TYPE_CHECKING:
    from pathlib import Path

PRIMARY_DEVICE_ID = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedAccount:
    """An account in the folder."""

    number: str | None
    aci: str
    device_id: int
    is_registered: bool  # False: Signal has refused it, such as after it was unlinked on the phone

    @property
    def is_primary(self) -> bool:
        """Whether the number was registered with signal-cli, instead of being linked to a phone."""
        return self.device_id == PRIMARY_DEVICE_ID

    @property
    def name(self) -> str:
        """What `signal-cli -a` takes."""
        return self.number or self.aci


def read_account(folder: Path, number: str | None) -> LinkedAccount | None:
    """Return the account to use; None if there is none yet. Raises AccountRefused if it is not clear which."""
    entries = [each for each in _read_json(folder / "data" / "accounts.json").get("accounts") or () if each.get("uuid")]
    found = [each for each in entries if number is None or each.get("number") == number]
    if len(found) > 1:
        numbers = ", ".join(str(each.get("number")) for each in found)
        raise AccountRefused(
            f"The folder {folder} has several Signal accounts: {numbers}. Set `account` to the one to use."
        )
    if not found:
        if entries:
            raise AccountRefused(
                f"The folder {folder} has no Signal account {number}. Check `account`, or leave it out to use the "
                "account that is there."
            )
        return None
    entry = found[0]
    state = _read_json(folder / "data" / str(entry.get("path", "")))
    return LinkedAccount(
        number=entry.get("number"),
        aci=str(entry["uuid"]),
        device_id=int(state.get("deviceId", 0)),
        is_registered=bool(state.get("registered")),
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise AccountRefused(
            f"The file {path} can't be read ({type(error).__name__}). Check its permissions, and that this is a folder "
            "of signal-cli."
        ) from None
    return content if isinstance(content, dict) else {}
