"""The people whom a principal knows: those who take part in conversations that the view shows.

Always true: a person outside of them and a person who does not exist give the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.errors import NotFound
from palaver.core.text import is_storable
from palaver.people import audience_table as audience_members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.people.model import Author, NamedPerson
    from palaver.sessions.view.scope import ViewScope

MAX_LISTED_PEOPLE = 200


def list_visible_people(tx: Transaction, scope: ViewScope) -> Sequence[NamedPerson]:
    """List the people who take part in the conversations of a scope, by name."""
    return audience_members.list_members(tx, scope.list_audiences(tx), MAX_LISTED_PEOPLE)


def resolve_authors(tx: Transaction, scope: ViewScope, person: str | None) -> Sequence[Author] | None:
    """Return all ids under which a person wrote, given by id or name; those of several people if a name is not unique.

    Raises NotFound if no person in the conversations of the scope has this id or name. None stays None.
    """
    if person is None:
        return None
    text = person.strip()
    found = audience_members.find_members(tx, scope.list_audiences(tx), text) if text and is_storable(text) else []
    if not found and scope.is_personal_lane_in_group:
        return []  # others read the answer: it must not tell whom the person knows elsewhere
    if not found:
        raise NotFound(f"No person in your conversations is called {text!r}.", person=text)
    return audience_members.list_authors(tx, [member.id for member in found])
