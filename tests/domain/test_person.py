"""Who may do what with a conversation that they see."""

from __future__ import annotations

import pytest

from palaver.domain.errors import NotAllowed
from palaver.domain.ids import JobId, PersonId
from palaver.domain.person import Action, Principal, Role, check_allowed, check_sees_everything

WORK = {Action.READ, Action.RENAME, Action.UNDO, Action.FORK}


def allowed(role: Role, action: Action, *, shared: bool) -> bool:
    try:
        check_allowed(Principal(PersonId("p"), role), action, shared=shared)
    except NotAllowed:
        return False
    return True


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("role", Role)
def test_one_does_everything_with_ones_own(role: Role, action: Action) -> None:
    assert allowed(role, action, shared=False)


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("role", [Role.MEMBER, Role.GUEST])
def test_in_a_shared_conversation_one_works_but_takes_nothing_from_the_others(role: Role, action: Action) -> None:
    assert allowed(role, action, shared=True) == (action in WORK)
    assert allowed(Role.OWNER, action, shared=True)


@pytest.mark.parametrize(
    ("role", "job", "may"),
    [
        (Role.OWNER, None, True),
        (Role.OWNER, JobId("nightly"), False),
        (Role.MEMBER, None, False),
        (Role.GUEST, None, False),
    ],
)
def test_only_the_owner_in_person_may_look_at_everything(role: Role, job: JobId | None, may: bool) -> None:
    principal = Principal(PersonId("p"), role, job)
    if may:
        check_sees_everything(principal)
    else:
        with pytest.raises(NotAllowed):
            check_sees_everything(principal)
