"""Putting the messages of a conversation with branches into one order.

Programs keep every version of a message: each message names the one before it, and an edited question or a
regenerated answer is another child of the same message. One path of this tree is shown; the rest is hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def order_tree(parents: Mapping[str, str | None], current: str | None) -> list[tuple[str, bool]]:
    """Return every id once, with whether it is hidden; linear in the number of ids.

    `parents` names for each id the one before it, in the order of the file. A parent that does not exist is replaced
    by the id before it in the file, so that one lost message does not hide everything before it. Visible is the path
    to `current`; without it, the path to the last id. Other versions come right before the one that replaced them,
    and what follows `current` comes last.
    """
    links = _repair_parents(parents)
    path = _find_path(links, current if current in links else next(reversed(links), None))
    children: dict[str | None, list[str]] = {}
    for node, parent in links.items():
        children.setdefault(parent, []).append(node)
    on_path = set(path)
    seen = set(path)
    ordered: list[tuple[str, bool]] = []
    before: str | None = None
    for node in path:
        siblings = [other for other in children.get(before, ()) if other not in on_path]
        ordered += ((hidden, True) for hidden in _walk(siblings, children, seen))
        ordered.append((node, False))
        before = node
    if path:
        ordered += ((hidden, True) for hidden in _walk(children.get(path[-1], []), children, seen))
    # What is left hangs together in circles: no beginning leads to it.
    ordered += ((hidden, True) for hidden in _walk(list(links), children, seen))
    return ordered


def _repair_parents(parents: Mapping[str, str | None]) -> dict[str, str | None]:
    links: dict[str, str | None] = {}
    previous: str | None = None
    for node, parent in parents.items():
        is_lost = parent is not None and (parent == node or parent not in parents)
        links[node] = previous if is_lost else parent
        previous = node
    return links


def _find_path(links: Mapping[str, str | None], last: str | None) -> list[str]:
    """Return the ids from the beginning to `last`; a circle is cut where it closes."""
    path: dict[str, None] = {}
    while last is not None and last not in path:
        path[last] = None
        last = links[last]
    return list(reversed(path))


def _walk(starts: list[str], children: Mapping[str | None, list[str]], seen: set[str]) -> Iterator[str]:
    """Yield the ids that were not seen, each before its children."""
    stack = list(reversed(starts))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        stack += reversed(children.get(node, []))
