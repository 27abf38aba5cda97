"""What holds for conversations, platform by platform, and which key of config.yaml decides it.

Pure: told from the operator's decisions, by the same rules that apply them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.gateway_config import SIDE_BY_SIDE
from palaver.domain.policy import ResetPolicy
from palaver.domain.source import ChatType, Platform
from palaver.domain.turn import BusyPolicy

if TYPE_CHECKING:
    from palaver.domain.gateway_config import GatewayConfig
    from palaver.domain.profile import TurnRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Afresh:
    """When conversations start afresh in chats of some kinds."""

    chat_types: tuple[ChatType, ...]
    policy: ResetPolicy
    key: str

    @property
    def is_default(self) -> bool:
        """Whether nobody has decided anything else."""
        return self.key == "session_reset" and self.policy == ResetPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """What holds on a platform."""

    platform: Platform | None  # None is wherever nothing else is said
    afresh: tuple[Afresh, ...]  # none where conversations stand side by side: nobody but a person begins one
    busy: BusyPolicy
    busy_key: str

    @property
    def busy_is_default(self) -> bool:
        """Whether nobody has decided anything else about messages that come while the agent is busy."""
        return self.busy_key == "turns.busy" and self.busy is BusyPolicy.QUEUE


def conduct(config: GatewayConfig, rules: TurnRules, platform: Platform | None) -> Conduct:
    """What holds on a platform, or wherever nothing else is said."""
    kinds: dict[str, list[ChatType]] = {}
    policies: dict[str, ResetPolicy] = {}
    for chat_type in _chat_types(platform):
        key, policy = config.reset_rule(platform, chat_type)
        kinds.setdefault(key, []).append(chat_type)
        policies[key] = policy
    own = platform in rules.busy_by_platform
    return Conduct(
        platform=platform,
        afresh=tuple(Afresh(chat_types=tuple(kinds[key]), policy=policies[key], key=key) for key in kinds),
        busy=rules.busy_by_platform[platform] if own and platform else rules.busy,
        busy_key=f"platforms.{platform}.busy" if own else "turns.busy",
    )


def _chat_types(platform: Platform | None) -> tuple[ChatType, ...]:
    """The kinds of chats whose conversations may start afresh by themselves."""
    if platform in SIDE_BY_SIDE:
        return ()
    return (ChatType.DM,) if platform == Platform.LOCAL else tuple(ChatType)
