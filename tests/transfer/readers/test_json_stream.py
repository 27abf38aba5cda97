"""A JSON list of any size is read item by item, and what is damaged in it does not spoil the rest."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from palaver.transfer.imported import InvalidImport
from palaver.transfer.reader_kit.export_files import ItemFile, ItemFinder, ItemSpan, ListProblem, UnreadableItem

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab"\\{}[], \u00e9\ud83d', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('k"\\}', max_size=3), inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.lists(st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=3) | st.lists(JSON_VALUES, max_size=3))


def find_items(data: bytes, size: int) -> list[ItemSpan | ListProblem]:
    """Find the items of a list whose bracket was read already, in chunks of a size."""
    return list(ItemFinder().find(data[start : start + size] for start in range(0, len(data), size)))


@given(items=ITEMS, size=st.integers(1, 9), indent=st.sampled_from([None, 1]))
def test_items_are_found_wherever_the_chunks_end(items: list[Any], size: int, indent: int | None) -> None:
    data = json.dumps(items, indent=indent).encode()[1:]
    found = [each for each in find_items(data, size) if isinstance(each, ItemSpan)]
    assert find_items(data, size) == found
    assert [json.loads(data[each.start : each.end]) for each in found] == items
    assert [each.number for each in found] == list(range(1, len(items) + 1))


@given(items=st.lists(ITEMS, max_size=3), size=st.integers(1, 60), broken=st.integers(0, 12))
def test_a_file_is_read_the_same_whatever_fits_into_the_buffer(items: list[Any], size: int, broken: int) -> None:
    texts = [json.dumps(item, ensure_ascii=False).encode("utf-8", "replace") for item in items]
    if broken < len(texts):
        texts[broken] = b'{"a": oops, "caf\xe9": [1]}'
    data = b" [ " + b" ,\n".join(texts) + b"]"
    file = ItemFile("a.json", io.BytesIO(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("palaver.transfer.reader_kit.export_files.BUFFER_BYTES", size)
        found = [each for each in file.find_spans() if isinstance(each, ItemSpan)]
        assert [data[each.start : each.end] for each in found] == texts
        assert [each.number for each in found] == list(range(1, len(texts) + 1))


def test_many_damaged_items_are_found_in_one_pass() -> None:
    data = b"[" + b",".join([b'{"a": oops}'] * 30_000) + b', {"a": 1}]'
    file = ItemFile("a.json", io.BytesIO(data))
    spans = [each for each in file.find_spans() if isinstance(each, ItemSpan)]
    assert len(spans) == 30_001
    assert file.read_item(spans[-1]) == {"a": 1}


@given(data=st.binary(max_size=40), size=st.integers(1, 5))
def test_any_bytes_are_survived(data: bytes, size: int) -> None:
    find_items(data, size)


@pytest.mark.parametrize(
    ("data", "numbers", "problem"),
    [
        (b'[{"a":1},{"b":2', [1], "The file ends in the middle of an item."),
        (b'[{"a":1},', [1], "The file ends too early."),
        (b'[{"a":1}] [{"b":1}]', [1, 2], "Unexpected text between two items"),
        (b'[{"a":1}]}', [1], "There is text after the end of the list."),
        (b'[{"a":1}, 7, {"b":2}]', [1, 2], "Unexpected text between two items"),
        (b'[{"a":1} {"b":2}]', [1, 2], "Unexpected text between two items"),
    ],
)
def test_what_is_no_item_is_reported_with_its_place(data: bytes, numbers: list[int], problem: str) -> None:
    for size in (1, 4, 100):
        found = find_items(data[1:], size)
        assert [each.number for each in found if isinstance(each, ItemSpan)] == numbers
        assert any(problem in each.what for each in found if isinstance(each, ListProblem))


def test_an_item_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.transfer.reader_kit.export_files.MAX_ITEM_BYTES", 50)
    data = json.dumps([{"small": 1}, {"large": "x" * 100}, {"last": 2}]).encode()
    file = ItemFile("a.json", io.BytesIO(data))
    spans = [each for each in file.find_spans() if isinstance(each, ItemSpan)]
    assert file.read_item(spans[0]) == {"small": 1}
    with pytest.raises(UnreadableItem, match="can be imported"):
        file.read_item(spans[1])
    assert file.read_item(spans[2]) == {"last": 2}


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ('{"a": }', "not valid JSON"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"a": ' + "9" * 5_000 + "}", "not valid JSON"),
    ],
)
def test_a_damaged_item_says_what_is_wrong(item: str, problem: str) -> None:
    file = ItemFile("a.json", io.BytesIO(f"[{item}]".encode()))
    [span] = file.find_spans()
    assert isinstance(span, ItemSpan)
    with pytest.raises(UnreadableItem, match=problem):
        file.read_item(span)


def test_a_byte_that_is_not_utf_8_does_not_lose_the_item() -> None:
    file = ItemFile("a.json", io.BytesIO(b'\xef\xbb\xbf [{"a": "caf\xe9"}]'))
    [span] = file.find_spans()
    assert isinstance(span, ItemSpan)
    assert file.read_item(span) == {"a": "caf�"}


def test_an_object_around_the_list_is_looked_into() -> None:
    file = ItemFile("a.json", io.BytesIO(b'{"version": 1, "chats": [{"a": 1}, {"b": 2}]}'), list_keys=("chats",))
    assert [file.read_item(span) for span in file.find_spans() if isinstance(span, ItemSpan)] == [{"a": 1}, {"b": 2}]
    file.close()


def test_one_object_without_a_list_is_one_item() -> None:
    file = ItemFile("a.json", io.BytesIO(b' {"mapping": {}}'), list_keys=("chats",))
    assert [file.read_item(span) for span in file.find_spans() if isinstance(span, ItemSpan)] == [{"mapping": {}}]


@pytest.mark.parametrize("data", [b"", b"hello", b'"text"', b"{broken"])
def test_a_file_that_is_no_list_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidImport, match=r"a\.json"):
        ItemFile("a.json", io.BytesIO(data))
