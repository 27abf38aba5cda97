"""Which models a role may choose, and what happens to a choice that is no longer allowed."""

from __future__ import annotations

import pytest

from palaver.agent.profiles import apply_choices, check_model_choice, list_allowed_models
from palaver.config.agent_rules import AgentProfile, Profile, TurnRules
from palaver.core.errors import InvalidInput, NotAllowed
from palaver.people.model import Role
from palaver.sessions.settings_table import SessionSettings
from palaver.testing import ScriptedAgent

RULES = TurnRules(models_by_role={Role.MEMBER: ("cheap:*", "scripted-mini", "broken"), Role.GUEST: ()})


class PickyAgent(ScriptedAgent):
    def check_model(self, name: str) -> None:
        if name == "broken":
            raise InvalidInput("broken can't be reached")


@pytest.mark.parametrize(
    ("role", "names"),
    [
        (Role.OWNER, ["scripted", "scripted-large"]),  # not in the settings: every model
        (Role.MEMBER, ["scripted", "scripted-mini"]),
        (Role.GUEST, ["scripted"]),
    ],
)
def test_the_default_and_the_allowed_models_are_listed(role: Role, names: list[str]) -> None:
    assert list_allowed_models(PickyAgent(), RULES, role) == names


def test_a_model_that_is_not_allowed_is_refused_with_the_others() -> None:
    check_model_choice(PickyAgent(), RULES, Role.MEMBER, "cheap:one")
    check_model_choice(PickyAgent(), RULES, Role.GUEST, "scripted")
    with pytest.raises(NotAllowed, match=r"scripted-large is not available to you\. Choose one of these: scripted\."):
        check_model_choice(PickyAgent(), RULES, Role.GUEST, "scripted-large")
    with pytest.raises(InvalidInput, match="can't be reached"):
        check_model_choice(PickyAgent(), RULES, Role.MEMBER, "broken")


@pytest.mark.parametrize(
    ("chosen", "profile", "used", "refused"),
    [
        ("small", "deep", "small", []),
        ("huge", None, None, ["huge"]),
        ("huge", "deep", None, ["huge", "big"]),
        (None, "deep", None, ["big"]),
        ("huge", "light", "small", ["huge"]),
    ],
)
def test_a_choice_that_is_no_longer_allowed_falls_back_and_says_so(
    chosen: str | None, profile: str | None, used: str | None, refused: list[str]
) -> None:
    agent_profile = AgentProfile(profiles={"deep": Profile(model="big"), "light": Profile(model="small")})
    settings = SessionSettings(model=chosen, profile=profile)
    choices = apply_choices(agent_profile, settings, lambda _name: None, lambda name: name == "small")
    assert choices.model == used
    assert [notice.text.split()[2] for notice in choices.notices] == refused
    assert all("so the default is used. Use /model" in notice.text for notice in choices.notices)
