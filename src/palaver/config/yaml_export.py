"""Decisions written down as lines of config.yaml: what would have to stand there for things to be as they are.

Always true: the lines, read as a config.yaml, give back the values they were made from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.source import Platform

if TYPE_CHECKING:
    from palaver.domain.platform_rules import Conduct
    from palaver.domain.policy import ResetPolicy

_ALWAYS_THERE = frozenset({Platform.LOCAL, Platform.WEB, Platform.API})  # nobody has to connect them


def conduct_lines(conduct: Conduct, *, connected: bool) -> str:
    """The lines that give a platform rules of its own, or that set what holds wherever nothing else is said.

    Naming a platform connects it, so one that is not connected is named as such.
    """
    name = conduct.platform
    if name is None:
        resets = [(each.key, each.policy) for each in conduct.afresh]
        busy = ["turns:", f"  busy: {conduct.busy}"]
    else:
        resets = [(f"reset_by_platform.{name}", each.policy) for each in conduct.afresh[:1]]
        off = [] if connected or name in _ALWAYS_THERE else ["    enabled: false"]
        busy = ["platforms:", f"  {name}:", *off, f"    busy: {conduct.busy}"]
    return "\n".join([*_sections(resets), *busy]) + "\n"


def _sections(resets: list[tuple[str, ResetPolicy]]) -> list[str]:
    """Reset policies under their keys; those of one section together."""
    lines: list[str] = []
    for key, policy in sorted(resets, key=lambda each: ("." in each[0], each[0])):
        steps = key.split(".")
        if len(steps) == 1 or f"{steps[0]}:" not in lines:
            lines.append(f"{steps[0]}:")
        lines += [f"  {step}:" for step in steps[1:]]
        lines += [f"{'  ' * len(steps)}{line}" for line in _policy(policy)]
    return lines


def _policy(policy: ResetPolicy) -> list[str]:
    return [
        f"mode: {policy.mode}",
        f"idle_minutes: {policy.idle_minutes}",
        f"at_hour: {policy.at_hour}",
        f"timezone: {policy.timezone}",
        f"notify: {str(policy.notify).lower()}",
    ]
