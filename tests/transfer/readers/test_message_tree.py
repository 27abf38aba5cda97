"""Every message of a tree comes in exactly once, and visible is exactly the path to the current one."""

from __future__ import annotations

from hypothesis import given, strategies as st

from palaver.transfer.reader_kit.values import order_tree

IDS = [str(number) for number in range(12)]
ANY_PARENTS = st.dictionaries(st.sampled_from(IDS), st.none() | st.sampled_from([*IDS, "gone"]), max_size=len(IDS))


@st.composite
def trees(draw: st.DrawFn) -> tuple[dict[str, str | None], str | None]:
    """Draw a tree without damage, in any order of the file, and a current message in it."""
    count = draw(st.integers(0, 12))
    parents = {str(number): str(draw(st.integers(0, number - 1))) if number else None for number in range(count)}
    shuffled = {node: parents[node] for node in draw(st.permutations(list(parents)))}
    return shuffled, draw(st.sampled_from(list(parents))) if parents else None


@given(tree=trees())
def test_the_path_to_the_current_message_is_visible_in_order(tree: tuple[dict[str, str | None], str | None]) -> None:
    parents, current = tree
    path: list[str] = []
    node = current
    while node is not None:
        path.insert(0, node)
        node = parents[node]
    ordered = order_tree(parents, current)
    assert [node for node, is_hidden in ordered if not is_hidden] == path
    assert sorted(node for node, _ in ordered) == sorted(parents)
    places = {node: place for place, (node, _) in enumerate(ordered)}
    for node, parent in parents.items():
        assert parent is None or places[parent] < places[node]  # an answer never comes before its question


@given(parents=ANY_PARENTS, current=st.none() | st.sampled_from([*IDS, "gone"]))
def test_circles_and_lost_messages_lose_and_double_nothing(parents: dict[str, str | None], current: str | None) -> None:
    ordered = order_tree(parents, current)
    assert sorted(node for node, _ in ordered) == sorted(parents)
    visible = [node for node, is_hidden in ordered if not is_hidden]
    if current in parents:
        assert visible[-1] == current


def test_other_versions_come_right_before_the_one_that_replaced_them() -> None:
    parents = {"q": None, "a1": "q", "more": "a1", "a2": "q", "next": "a2", "later": "next"}
    assert order_tree(parents, "next") == [
        ("q", False),
        ("a1", True),
        ("more", True),
        ("a2", False),
        ("next", False),
        ("later", True),
    ]


def test_a_lost_message_does_not_hide_what_came_before_it() -> None:
    parents = {"1": None, "2": "1", "4": "3", "5": "4"}  # 3 could not be read
    assert order_tree(parents, "5") == [("1", False), ("2", False), ("4", False), ("5", False)]


def test_a_chain_of_a_hundred_thousand_messages_is_ordered() -> None:
    parents: dict[str, str | None] = {str(number): str(number - 1) if number else None for number in range(100_000)}
    assert [node for node, _ in order_tree(parents, "50000")] == list(parents)
