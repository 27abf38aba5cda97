"""Titles of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore


@pytest.mark.both_engines
def test_a_free_title_is_found_even_if_its_number_shortens_it(
    store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    """The number takes room from a long title, which must not lead to a title that is already taken."""
    title = "T" * 100
    titles = set()
    for number in range(12):
        session_id = store.get_or_create_session(dm(thread_id=str(number))).session_id
        free_title = store.rename_session(session_id, store.find_free_title(session_id, title)).title
        assert free_title not in titles
        titles.add(free_title)
