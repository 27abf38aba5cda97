"""What holds for conversations here, for whoever wants to know: the operator's decisions, and nothing secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.platform_rules import conduct
from palaver.domain.source import BUILT_IN
from palaver.services.operation import Awaiting, operation
from palaver.storage import people
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.person import Principal
    from palaver.domain.platform_rules import Conduct
    from palaver.domain.profile import TurnRules
    from palaver.domain.source import Platform
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction, Work


class Policies(Awaiting):
    """Tells when conversations start afresh, and what happens to messages while the agent is busy."""

    def __init__(self, store: SessionStore, rules: TurnRules) -> None:
        self._engine = store.engine
        self._config = store.config
        self._rules = rules

    @operation
    def for_principal(self, principal: Principal) -> Work[Sequence[Conduct]]:
        """What holds where nothing else is said, then on each platform that is set up, or that somebody is known on."""

        def run(tx: Transaction) -> Sequence[Conduct]:
            known = people.platforms_of(tx, principal.person_id)
            set_up = (*self._config.connected_platforms, *self._config.reset_by_platform, *self._rules.busy_by_platform)
            names = sorted({*known, *set_up}, key=_place)
            return [conduct(self._config, self._rules, name) for name in (None, *names)]

        return Read(run)


def _place(platform: Platform) -> tuple[int, str]:
    """Our own platforms first, those of plugins last."""
    return BUILT_IN.index(platform) if platform in BUILT_IN else len(BUILT_IN), platform
