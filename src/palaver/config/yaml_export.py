"""Writes the rules of a platform as lines of config.yaml, to copy into the file.

Always true: a config.yaml with these lines gives the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.source import Platform

if TYPE_CHECKING:
    from palaver.domain.platform_rules import PlatformRules
    from palaver.domain.policy import ResetPolicy

_ALWAYS_CONNECTED = frozenset({Platform.LOCAL, Platform.WEB, Platform.API})


def format_platform_rules(rules: PlatformRules, *, connected: bool) -> str:
    """Return the lines that set the rules of one platform, or those of all platforms without rules of their own.

    A platform that is in config.yaml is connected, so the lines disable one that is not connected now.
    """
    platform = rules.platform
    if platform is None:
        policies = [(rule.setting_key, rule.policy) for rule in rules.reset_rules]
        busy_lines = ["turns:", f"  busy_policy: {rules.busy_policy}"]
    else:
        policies = [(f"reset_by_platform.{platform}", rule.policy) for rule in rules.reset_rules[:1]]
        disabled = [] if connected or platform in _ALWAYS_CONNECTED else ["    enabled: false"]
        busy_lines = ["platforms:", f"  {platform}:", *disabled, f"    busy_policy: {rules.busy_policy}"]
    return "\n".join([*_format_policies(policies), *busy_lines]) + "\n"


def _format_policies(policies: list[tuple[str, ResetPolicy]]) -> list[str]:
    """Return reset policies under their keys, with those of one section together."""
    lines: list[str] = []
    for key, policy in sorted(policies, key=lambda each: ("." in each[0], each[0])):
        parts = key.split(".")
        if len(parts) == 1 or f"{parts[0]}:" not in lines:
            lines.append(f"{parts[0]}:")
        lines += [f"  {part}:" for part in parts[1:]]
        lines += [f"{'  ' * len(parts)}{line}" for line in _format_policy(policy)]
    return lines


def _format_policy(policy: ResetPolicy) -> list[str]:
    return [
        f"mode: {policy.mode}",
        f"idle_minutes: {policy.idle_minutes}",
        f"at_hour: {policy.at_hour}",
        f"timezone: {policy.timezone}",
        f"notify: {str(policy.notify).lower()}",
    ]
