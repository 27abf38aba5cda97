"""The settings that an import proposes: what differs here, what has no counterpart, and applying them after a yes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import click

from palaver.cli import output
from palaver.cli.config import format_plain
from palaver.cli.options import is_interactive
from palaver.core.dataclass import dataclass
from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from palaver.people.model import Principal
    from palaver.settings.editor import SettingsEditor
    from palaver.settings.reader import LoadedSettings
    from palaver.transfer.imported import ImportedSetting


class ProposalState(StrEnum):
    SAME = "same"  # here already
    DIFFERS = "differs"
    PINNED = "pinned"  # by the environment or config.yaml here
    REFUSED = "refused"  # it is not valid here
    LEFT_OUT = "left_out"  # there is no such setting here


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingProposal:
    setting: ImportedSetting
    state: ProposalState
    current: object = None  # the value here
    reason: str = ""  # where it is pinned, or why it is refused

    def to_dict(self) -> dict[str, Any]:
        each = self.setting
        return {
            "name": each.name,
            "shown": each.shown,
            "is_default": each.is_default,
            "key": each.key,
            "value": each.value,
            "state": self.state.value,
            "current": self.current,
            "reason": self.reason or None,
            "meaning": each.meaning or None,
        }


class SettingsOffer:
    """The settings of another program, compared with those here."""

    def __init__(self, editor: SettingsEditor, principal: Principal, found: Sequence[ImportedSetting]) -> None:
        self._editor = editor
        self._principal = principal
        self.proposals = _compare(editor, found)
        self.was_shown = False
        self.change_no: int | None = None
        self.is_applied = False

    @property
    def open_count(self) -> int:
        return sum(each.state is ProposalState.DIFFERS for each in self.proposals)

    def decide(self, choice: bool | None, *, dry_run: bool, can_ask: bool = True) -> LoadedSettings | None:
        """Apply what differs if the operator wants that, and return the settings from then on; None if they stay.

        At a terminal it asks once. A dry run returns what the settings would be.
        """
        if not self.open_count:
            return None
        if choice is None and can_ask and not dry_run and is_interactive() and not output.wants_json():
            self.was_shown = True
            for line in self.format_lines():
                click.echo(output.clean_text(line))
            number = output.format_count(self.open_count, "setting")
            choice = click.confirm(f"Apply {'these' if self.open_count > 1 else 'this'} {number}?", err=True)
        if not choice:
            return None
        from dataclasses import replace

        from palaver.config.setting_templates import parse_key
        from palaver.settings.editor import SettingsEdit

        values = {
            str(each.setting.key): each.setting.value for each in self.proposals if each.state is ProposalState.DIFFERS
        }
        if dry_run:
            loaded = self._editor.reader.load()
            paths = {parse_key(key): value for key, value in values.items()}
            return replace(loaded, combined=self._editor.reader.combine({**loaded.values, **paths}))
        result = self._editor.change(self._principal, SettingsEdit(values=values, origin="terminal"))
        self.change_no, self.is_applied = result.change_no, True
        return result.loaded

    def to_dict(self) -> dict[str, Any]:
        return {
            "applied": self.is_applied,
            "change": self.change_no,
            "listed": [each.to_dict() for each in self.proposals],
        }

    def format_lines(self) -> Iterator[str]:
        yield "Settings there and here:"
        for each in self.proposals:
            if each.state is not ProposalState.LEFT_OUT:
                yield f"  - {_format_proposal(each)}"
        left_out = [each.setting for each in self.proposals if each.state is ProposalState.LEFT_OUT]
        if left_out:
            yield "Settings that are left out:"
            yield from (f"  - {each.name}{f': {each.shown}' * bool(each.shown)}. {each.meaning}" for each in left_out)

    def format_outcome(self, command: str, *, choice: bool | None, dry_run: bool) -> Iterator[str]:
        """Say what was done with what differs, and how to do the other thing with the same command."""
        number = output.format_count(self.open_count, "setting")
        if not self.open_count:
            return
        if self.is_applied:
            yield f"Applied {number}. To undo: {format_command(f'config undo {self.change_no}')}"
            return
        if dry_run and choice:
            yield f"{number} would be applied."
            return
        apply = format_command(f"{command} --settings")
        if dry_run and choice is None:
            yield f"{number} would be applied after a yes, or with: {apply}"
        else:
            yield f"{number} not applied, so this is different here. To apply, before people write here: {apply}"
        for each in self.proposals:
            if each.state is ProposalState.DIFFERS and each.setting.meaning:
                yield f"  - {each.setting.name}: {each.setting.shown}. {each.setting.meaning}"


def _compare(editor: SettingsEditor, found: Sequence[ImportedSetting]) -> list[SettingProposal]:
    from palaver.config.setting_templates import NAME, parse_key
    from palaver.settings.overview import SettingsOverview

    loaded = editor.reader.load()
    overview = SettingsOverview(loaded, editor.catalog)
    proposals = []
    for setting in found:
        value = None if setting.key is None else overview.find_value(parse_key(setting.key))
        if value is None:
            proposals.append(SettingProposal(setting=setting, state=ProposalState.LEFT_OUT))
            continue
        state, reason = ProposalState.DIFFERS, ""
        combined = editor.reader.combine({**loaded.values, value.path: setting.value})
        problem = next((each.text for each in combined.problems if each.path == value.path), None)
        # A section with a name that does not exist here has no defaults: what is above it applies.
        if value.value == setting.value and (value.is_set or NAME not in value.template.parts):
            state = ProposalState.SAME
        elif not value.can_change:
            state, reason = ProposalState.PINNED, str(value.source)
        elif problem is not None:
            state, reason = ProposalState.REFUSED, problem
        proposals.append(SettingProposal(setting=setting, state=state, current=value.value, reason=reason))
    return proposals


def _format_proposal(proposal: SettingProposal) -> str:
    setting = proposal.setting
    there = f"{setting.name}: {setting.shown}{' (its default)' * setting.is_default}"
    here = "not set" if proposal.current is None else format_plain(proposal.current)
    match proposal.state:
        case ProposalState.SAME:
            return f"{there} → {setting.key}: the same here"
        case ProposalState.PINNED:
            return f"{there} → {setting.key} is {here} here, set by {proposal.reason}. Change it there."
        case ProposalState.REFUSED:
            return f"{there} → {setting.key} can't have this value here: {proposal.reason}"
        case _:
            return f"{there} → {setting.key}: {format_plain(setting.value)} (here: {here})"
