"""The rules for conversations that the operator has configured, as people may see them: nothing secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.config.platform_rules import get_platform_rules
from palaver.core.engines.base import Read
from palaver.core.operation import AsyncRunner, Operations, operation
from palaver.core.source import BUILT_IN_PLATFORMS
from palaver.people import table as people

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.config.agent_rules import TurnRules
    from palaver.config.platform_rules import PlatformRules
    from palaver.core.engines.base import Transaction, Work
    from palaver.core.source import Platform
    from palaver.people.model import Principal
    from palaver.sessions.store import SessionStore


class Policies(Operations[AsyncRunner]):
    """Lists when conversations restart, and what happens to messages while the agent is busy."""

    def __init__(self, store: SessionStore, get_rules: Callable[[], TurnRules]) -> None:
        super().__init__(AsyncRunner(store.engine))
        self._store = store
        self._get_rules = get_rules  # those that are in force now

    @operation
    def list_rules(self, principal: Principal) -> Work[Sequence[PlatformRules]]:
        """List the default rules, then the rules of each platform that is configured or that the person uses."""

        config, rules = self._store.config, self._get_rules()

        def run(tx: Transaction) -> Sequence[PlatformRules]:
            platforms = {
                *people.list_platforms(tx, principal.person_id),
                *config.connected_platforms,
                *config.reset_by_platform,
                *rules.busy_policy_by_platform,
            }
            ordered = sorted(platforms, key=_get_sort_key)
            return [get_platform_rules(config, rules, platform) for platform in (None, *ordered)]

        return Read(run)


def _get_sort_key(platform: Platform) -> tuple[int, str]:
    """Order built-in platforms first, those of plugins last."""
    return BUILT_IN_PLATFORMS.index(platform) if platform in BUILT_IN_PLATFORMS else len(BUILT_IN_PLATFORMS), platform
