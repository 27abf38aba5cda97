"""Changes stored settings: several keys at once, all or none, validated before anything is stored, recorded with who
and when.

Always true: what is stored was valid together with everything else at that moment; a change that another process has
made meanwhile is never overwritten unseen.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from palaver.config.layers import SettingProblem, flatten
from palaver.config.setting_templates import (
    SettingPath,
    find_template,
    format_path,
    is_literal_text,
    list_parts_below,
    parse_key,
)
from palaver.config.settings_key import (
    VARIABLE,
    KeyRing,
    SettingsKey,
    create_key_file,
    generate_key_text,
    read_key_texts,
    write_key_file,
)
from palaver.config.validation import format_value
from palaver.core.clock import Clock, to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import (
    ChangeNotFound,
    InvalidInput,
    InvalidSettings,
    NothingToDo,
    SettingsChanged,
)
from palaver.core.invocation import format_command
from palaver.core.text import is_storable
from palaver.core.texts import join_texts, say
from palaver.people.model import Principal, check_is_owner
from palaver.settings import table as settings_storage
from palaver.settings.encryption import (
    ChangeItem,
    DecryptionFailed,
    SettingsChange,
    is_encrypted,
    read_or_keep_encrypted,
    read_value,
    write_encrypted,
    write_plain,
)
from palaver.settings.overview import PlatformCatalog, SecretPairs, find_exposed_secrets, is_secret_setting

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from palaver.config import Settings
    from palaver.settings.reader import LoadedSettings, SettingsReader
    from palaver.settings.table import SettingRow, SettingsState

    FindProblems = Callable[[Settings, Settings, Collection[SettingPath]], Iterable[SettingProblem]]

MAX_CHANGED_KEYS: Final = 200  # in one request
MAX_STORED_KEYS: Final = 5000
MAX_VALUE_CHARS: Final = 100_000  # of the JSON of one value
_MAX_ATTEMPTS: Final = 5  # while other processes change settings at the same time


@dataclass(frozen=True, kw_only=True)
class SettingsEdit:
    """A change to make. A section may be set as a whole: its keys are set. Unsetting a section unsets all its keys."""

    values: Mapping[str, object] = field(default_factory=dict, repr=False)  # by key
    unset: Sequence[str] = ()
    expected_version: int | None = None  # of the settings that the person has seen; None: whatever there is
    origin: str = "page"  # or terminal
    undoes: int | None = None


@dataclass(frozen=True, kw_only=True)
class EditResult:
    """The settings after a change; `change_no` is None if everything was so already."""

    loaded: LoadedSettings
    change_no: int | None
    changed: tuple[SettingPath, ...]


class SettingsEditor:
    """Changes the settings of one store. It blocks: call it in a thread."""

    def __init__(
        self,
        reader: SettingsReader,
        clock: Clock,
        catalog: PlatformCatalog,
        checks: Sequence[FindProblems],
    ) -> None:
        self.reader = reader
        self._clock = clock
        self.catalog = catalog
        self._checks = (catalog.find_problems, *checks)

    def change(self, principal: Principal, edit: SettingsEdit) -> EditResult:
        """Set and unset settings. Raises InvalidSettings with all problems, having stored nothing."""
        check_is_owner(principal)
        for _ in range(_MAX_ATTEMPTS):
            loaded = self.reader.load()
            if edit.expected_version not in (None, loaded.state.version):
                raise SettingsChanged(version=loaded.state.version)
            changes = self._resolve(edit, loaded)
            if not changes:
                return EditResult(loaded=loaded, change_no=None, changed=())
            self._validate(changes, loaded, edit)
            change_no = self._store(principal, edit, changes, loaded)
            if change_no is not None:
                return EditResult(loaded=self.reader.load(), change_no=change_no, changed=tuple(changes))
        raise SettingsChanged

    def undo(
        self, principal: Principal, number: int, *, origin: str = "page", expected_version: int | None = None
    ) -> EditResult:
        """Put back the values from before a change; that is a change itself. Raises ChangeNotFound."""
        check_is_owner(principal)
        change = self.reader.engine.run(Read(lambda tx: settings_storage.find_change(tx, number)))
        if change is None:
            raise ChangeNotFound(f"There is no change {number} in the history of the settings.", change=number)
        ring, _ = self.reader.load_ring()
        values: dict[str, object] = {}
        for item in change.items:
            if item.stored_before is not None:
                try:
                    values[item.key] = read_value(item.stored_before, item.key, ring)
                except DecryptionFailed as error:
                    problem = SettingProblem(
                        path=parse_key(item.key),
                        text=say("settings.earlier_value", "its earlier value: {reason}", reason=error.text),
                    )
                    raise _make_error([problem]) from error
        unset = [item.key for item in change.items if item.stored_before is None]
        edit = SettingsEdit(values=values, unset=unset, origin=origin, undoes=number, expected_version=expected_version)
        return self.change(principal, edit)

    def list_history(self, principal: Principal, *, before: int | None = None, limit: int = 50) -> list[SettingsChange]:
        check_is_owner(principal)
        return self.reader.engine.run(Read(lambda tx: settings_storage.list_changes(tx, before=before, limit=limit)))

    def _resolve(self, edit: SettingsEdit, loaded: LoadedSettings) -> dict[SettingPath, Any]:
        """Return the values that change, by path; `_UNSET` for those that are removed."""
        changes: dict[SettingPath, Any] = {}
        for key in edit.unset:
            prefix = parse_key(key)
            changes |= {path: _UNSET for path in loaded.rows if path[: len(prefix)] == prefix}
        given = _flatten_values(edit)
        changes |= {
            path: _normalize(path, value, is_secret=is_secret_setting(self.catalog, path, value))
            for path, value in given.items()
        }
        missing = object()
        changes = {
            path: value
            for path, value in changes.items()
            if value is _UNSET or loaded.values.get(path, missing) != value or path in loaded.unreadable
        }
        if len(changes) > MAX_CHANGED_KEYS:
            message = say(
                "settings.too_many_changes", "At most {limit} settings can be changed at once.", limit=MAX_CHANGED_KEYS
            )
            raise InvalidSettings(message, problems=[])
        return changes

    def _validate(self, changes: Mapping[SettingPath, Any], loaded: LoadedSettings, edit: SettingsEdit) -> None:
        problems = [
            SettingProblem(path=path, text=text)
            for path, value in changes.items()
            if value is not _UNSET
            and (text := self._explain_fixed(path, edit.origin) or _explain_unstorable(path, value))
        ]
        if edit.origin != "terminal":
            problems += self._find_exposed(changes, loaded, edit)
        if problems:
            raise _make_error(problems)
        values = _apply(loaded.values, changes)
        if len(values) > MAX_STORED_KEYS:
            raise InvalidSettings(
                say("settings.most_settings_stored", "At most {limit} settings can be stored.", limit=MAX_STORED_KEYS),
                problems=[],
            )
        after = self.reader.combine(values)
        known = set(loaded.combined.problems)
        problems = [each for each in after.problems if each not in known or each.path in changes]
        if not problems:
            for check in self._checks:
                problems += check(loaded.settings, after.settings, changes.keys())
        if problems:
            raise _make_error(problems)

    def _find_exposed(
        self, changes: Mapping[SettingPath, Any], loaded: LoadedSettings, edit: SettingsEdit
    ) -> Iterator[SettingProblem]:
        """Yield the secrets that a change would send to addresses that they were not entered for."""
        secrets = SecretPairs(loaded.settings.fixed_layers, self.catalog)
        now = loaded.values_with_encrypted
        known = [secrets.find(now)]
        # A secret that is entered again need not differ from the stored one. What is undone was not entered, but was
        # together with its addresses right before the change.
        entered = _flatten_values(edit).keys() if edit.undoes is None else set()
        if edit.undoes is not None:
            known.append(secrets.find(self._load_values_before(edit.undoes, loaded)))
        return find_exposed_secrets(secrets.find(_apply(now, changes)), known, entered)

    def _load_values_before(self, number: int, loaded: LoadedSettings) -> dict[SettingPath, object]:
        """Return the values that were stored right before a change: all changes since then are in the history."""
        find = Read(lambda tx: settings_storage.list_changes(tx, before=None, limit=settings_storage.MAX_CHANGES))
        values = loaded.values_with_encrypted
        for change in self.reader.engine.run(find):
            if change.number < number:
                break
            for item in change.items:
                values.pop(parse_key(item.key), None)
                if item.stored_before is not None:
                    values[parse_key(item.key)] = read_or_keep_encrypted(item.stored_before, item.key, loaded.ring)
        return values

    def _explain_fixed(self, path: SettingPath, origin: str) -> str | None:
        """Return why a key can't be changed, or not from there."""
        template = find_template(path)
        if template is None:
            return None
        if template.unstorable_reason is not None:
            return say(
                "settings.cant_changed_here", "it can't be changed here. {reason}", reason=template.unstorable_reason
            )
        place = self.catalog.find_variable(path) or self.reader.base.fixed_layers.find_place(path)
        if place is not None:
            return say(
                "settings.pinned",
                "it is set by {place}. Change it there, or remove it there first",
                place=place,
            )
        is_terminal_only = (
            self.catalog.is_terminal_only(path[1], path[-1])
            if template.is_adapter_setting
            else template.is_terminal_only
        )
        if origin != "terminal" and is_terminal_only:
            return say(
                "settings.starts_program",
                "it starts a program on the server, so it can be changed only there: with {command} or in config.yaml",
                command=f"`{format_command('config set')}`",
            )
        return None

    def _store(
        self, principal: Principal, edit: SettingsEdit, changes: Mapping[SettingPath, Any], loaded: LoadedSettings
    ) -> int | None:
        """Store the change and its record in one transaction; None if another process was faster."""
        key_id = loaded.state.key_id
        key: SettingsKey | None = None
        items = []
        for path, value in changes.items():
            name = format_path(path)
            after = None
            if value is not _UNSET and is_secret_setting(self.catalog, path, value):
                key = key or self._find_key(loaded)
                key_id = key.id
                after = write_encrypted(key, name, value)
            elif value is not _UNSET:
                after = write_plain(value)
            before = loaded.rows[path].value if path in loaded.rows else None
            items.append(ChangeItem(name, before, after))
        now = to_micros(self._clock.now())
        state = replace(loaded.state, version=loaded.state.version + 1, key_id=key_id)
        person_id = principal.person_id

        def write(tx: Transaction) -> int | None:
            if settings_storage.lock_state(tx) != loaded.state:
                return None
            settings_storage.apply_items(tx, items, person_id, now)
            settings_storage.save_state(tx, state)
            return settings_storage.add_change(
                tx, items, person_id=person_id, origin=edit.origin, undoes=edit.undoes, now=now
            )

        crash_point("settings.before_change")
        change_no = self.reader.engine.run(Write(write))
        crash_point("settings.changed")
        return change_no

    def _find_key(self, loaded: LoadedSettings) -> SettingsKey:
        """Return the key to encrypt with: that of the other secrets, or else a key of this machine, made if needed."""
        ring, problem = self.reader.load_ring()
        if problem is not None:
            raise InvalidSettings(problem, problems=[])
        if loaded.state.key_id is not None and (key := ring.find(loaded.state.key_id)) is not None:
            return key
        if not ring.keys:
            ring = create_key_file(self.reader.base.home)
        return ring.keys[0]


_UNSET: Final = object()


def _apply(values: Mapping[SettingPath, object], changes: Mapping[SettingPath, Any]) -> dict[SettingPath, object]:
    kept = {path: value for path, value in values.items() if path not in changes}
    return kept | {path: value for path, value in changes.items() if value is not _UNSET}


def _flatten_values(edit: SettingsEdit) -> dict[SettingPath, Any]:
    """Return the values of an edit by path, those of a section one by one."""
    values: dict[SettingPath, Any] = {}
    for key, value in edit.values.items():
        path = parse_key(key)
        if isinstance(value, dict) and find_template(path) is None:
            values |= dict(flatten(value, path))
        else:
            values[path] = value
    return values


def _normalize(path: SettingPath, value: object, *, is_secret: bool) -> object:
    """Return a value as config.yaml would give it: ids and amounts are text. Spaces around a pasted secret are cut."""
    if is_literal_text(path) and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value.strip() if is_secret and isinstance(value, str) else value


def _explain_unstorable(path: SettingPath, value: object) -> str | None:
    """Return why a value can't be stored at all."""
    if find_template(path) is None and list_parts_below(path):
        return f"{format_value(path, value)} is not allowed (a section with keys)"
    text = write_plain(value)
    if len(text) > MAX_VALUE_CHARS:
        return say(
            "settings.too_long",
            "this is too long (at most {limit} characters)",
            limit=str(MAX_VALUE_CHARS),
        )
    if not is_storable(text) or "\\u0000" in text or not all(map(is_storable, path)):
        return say("settings.bad_characters", "it contains characters that can't be stored")
    return None


def _make_error(problems: Sequence[SettingProblem]) -> InvalidSettings:
    return InvalidSettings(
        join_texts("\n", [each.message for each in problems]),
        problems=[{"key": format_path(each.path), "message": each.message} for each in problems],
    )


# Re-encrypts all secrets with a new key.
#
# With a key file, a new key is made: the file gets both keys, then one transaction re-encrypts everything, then the
# file keeps the new key only. Whenever the process is killed, the file has the key of what is in the database.
#
# With PALAVER_SECRET_KEY, the operator sets `new,old` and starts everything again; this re-encrypts with the new one.


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
    new_rows = [_reencrypt_row(row, ring, new_key) for row in rows]
    new_history = [(no, _reencrypt_item(item, ring, new_key)) for no, item in history]
    dropped = sum(
        old.stored_before is not None and item.stored_before is None
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
    """Read the state, and the settings and the items of the history that are secret."""
    rows = [row for row in settings_storage.list_all(tx) if is_encrypted(row.value)]
    items = [(no, item) for no, item in settings_storage.list_items(tx) if item.is_secret]
    return settings_storage.load_state(tx), rows, items


def _reencrypt_row(row: SettingRow, ring: KeyRing, key: SettingsKey) -> SettingRow:
    try:
        return replace(row, value=_reencrypt(row.value, row.key, ring, key))
    except DecryptionFailed as error:
        raise InvalidInput(f"{row.key}: {error} Or remove it with `palaver config unset {row.key}`.") from error


def _reencrypt_item(item: ChangeItem, ring: KeyRing, key: SettingsKey) -> ChangeItem:
    """Re-encrypt the earlier and later value of a change; what no key can decrypt is dropped from the history."""
    texts = []
    for text in (item.stored_before, item.stored_after):
        try:
            texts.append(text if text is None or not is_encrypted(text) else _reencrypt(text, item.key, ring, key))
        except DecryptionFailed:
            texts.append(None)
    return ChangeItem(item.key, *texts)


def _reencrypt(text: str, name: str, ring: KeyRing, key: SettingsKey) -> str:
    return write_encrypted(key, name, read_value(text, name, ring))
