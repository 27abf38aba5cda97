"""What each role may do with a conversation that it sees."""

from __future__ import annotations

import pytest

from palaver.core.errors import NotAllowed
from palaver.core.ids import JobId, PersonId
from palaver.people.model import Action, Principal, Role, check_action_allowed, check_can_view_all

ALLOWED_IN_SHARED = {Action.READ, Action.RENAME, Action.UNDO, Action.FORK}


def is_allowed(role: Role, action: Action, *, shared: bool) -> bool:
    try:
        check_action_allowed(Principal(PersonId("p"), role), action, shared=shared)
    except NotAllowed:
        return False
    return True


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("role", Role)
def test_everyone_can_do_everything_with_their_own_conversation(role: Role, action: Action) -> None:
    assert is_allowed(role, action, shared=False)


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("role", [Role.MEMBER, Role.GUEST])
def test_in_a_shared_conversation_only_owners_can_organize_and_delete(role: Role, action: Action) -> None:
    assert is_allowed(role, action, shared=True) == (action in ALLOWED_IN_SHARED)
    assert is_allowed(Role.OWNER, action, shared=True)


@pytest.mark.parametrize(
    ("role", "job_id", "is_permitted"),
    [
        (Role.OWNER, None, True),
        (Role.OWNER, JobId("nightly"), False),
        (Role.MEMBER, None, False),
        (Role.GUEST, None, False),
    ],
)
def test_only_an_owner_in_person_can_view_all_conversations(
    role: Role, job_id: JobId | None, is_permitted: bool
) -> None:
    principal = Principal(PersonId("p"), role, job_id)
    if is_permitted:
        check_can_view_all(principal)
    else:
        with pytest.raises(NotAllowed):
            check_can_view_all(principal)
