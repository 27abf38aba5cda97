"""Re-encrypts all secrets with a new key.

With a key file, a new key is made: the file gets both keys, then one transaction re-encrypts everything, then the file
keeps the new key only. Whenever the process is killed, the file has the key of what is in the database.

With PALAVER_SECRET_KEY, the operator sets `new,old` and starts everything again; this re-encrypts with the new one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from palaver.config.settings_key import (
    VARIABLE,
    KeyRing,
    SettingsKey,
    generate_key_text,
    read_key_texts,
    write_key_file,
)
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput, NothingToDo, SettingsChanged
from palaver.settings import table as settings_storage
from palaver.settings.encryption import DecryptionFailed, is_encrypted, read_value, write_encrypted

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.settings.reader import SettingsReader
    from palaver.settings.table import ChangeItem, SettingRow, SettingsState


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationResult:
    secret_count: int
    dropped_count: int  # earlier values in the history that no key could decrypt


def rotate_key(reader: SettingsReader) -> RotationResult:
    """Re-encrypt all secrets. Raises InvalidInput if one can't be decrypted: nothing is changed then."""
    ring, problem = reader.load_ring()
    if problem is not None:
        raise InvalidInput(problem)
    state, rows, history = reader.engine.run(Read(_read))
    if state.key_id is None:
        raise NothingToDo("There are no secrets in the settings, so there is no key to rotate.")
    new_key = _prepare_key(reader, ring, state)
    ring = KeyRing((new_key, *ring.keys), ring.is_from_variable)
    crash_point("settings.key_written")
    new_rows = [_reencrypt_row(row, ring, new_key) for row in rows if is_encrypted(row.value)]
    new_history = [(no, _reencrypt_item(item, ring, new_key)) for no, item in history]
    dropped = sum(
        (item.before is None) < (old.before is None) or (old.before is not None and item.before is None)
        for (_, item), (_, old) in zip(new_history, history, strict=True)
    )
    new_state = replace(state, version=state.version + 1, key_id=new_key.id)

    def write(tx: Transaction) -> bool:
        if settings_storage.lock_state(tx) != state:
            return False
        settings_storage.replace_values(tx, new_rows)
        settings_storage.replace_items(tx, new_history)
        settings_storage.save_state(tx, new_state)
        return True

    crash_point("settings.before_rotation")
    if not reader.engine.run(Write(write)):
        raise SettingsChanged("The settings were changed meanwhile, so the key was not rotated. Try again.")
    crash_point("settings.rotated")
    if not ring.is_from_variable:
        crash_point("settings.before_key_cleanup")
        texts = read_key_texts(reader.base.home)
        write_key_file(reader.base.home, [text for text in texts if SettingsKey.from_text(text).id == new_key.id])
    return RotationResult(secret_count=len(new_rows), dropped_count=dropped)


def _prepare_key(reader: SettingsReader, ring: KeyRing, state: SettingsState) -> SettingsKey:
    """Return the key to encrypt with. In a file it is added to the others, which stay until everything is stored."""
    if ring.is_from_variable:
        if ring.keys[0].id == state.key_id:
            raise NothingToDo(
                f"The secrets are encrypted with the first key of {VARIABLE} already. To use another one, set"
                f" {VARIABLE} to the new key, a comma and the old key, start Palaver again, and repeat this command."
            )
        return ring.keys[0]
    text = generate_key_text()
    kept = [each for each in read_key_texts(reader.base.home) if SettingsKey.from_text(each).id == state.key_id]
    write_key_file(reader.base.home, [text, *kept])
    return SettingsKey.from_text(text)


def _read(tx: Transaction) -> tuple[SettingsState, list[SettingRow], list[tuple[int, ChangeItem]]]:
    return settings_storage.load_state(tx), settings_storage.list_all(tx), settings_storage.list_encrypted_items(tx)


def _reencrypt_row(row: SettingRow, ring: KeyRing, key: SettingsKey) -> SettingRow:
    try:
        return replace(row, value=_reencrypt(row.value, row.key, ring, key))
    except DecryptionFailed as error:
        raise InvalidInput(f"{row.key}: {error} Or remove it with `palaver config unset {row.key}`.") from error


def _reencrypt_item(item: ChangeItem, ring: KeyRing, key: SettingsKey) -> ChangeItem:
    """Re-encrypt the earlier and later value of a change; what no key can decrypt is dropped from the history."""
    texts = []
    for text in (item.before, item.after):
        try:
            texts.append(text if text is None or not is_encrypted(text) else _reencrypt(text, item.key, ring, key))
        except DecryptionFailed:
            texts.append(None)
    return replace(item, before=texts[0], after=texts[1])


def _reencrypt(text: str, name: str, ring: KeyRing, key: SettingsKey) -> str:
    return write_encrypted(key, name, read_value(text, name, ring))
