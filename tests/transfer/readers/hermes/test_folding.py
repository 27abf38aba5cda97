"""Folding copies: by evidence, never by the words alone."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from palaver.transfer.readers.hermes.folding import (
    DROP,
    SHOW,
    SUMMARIZE,
    Copy,
    PlannedRecord,
    find_flushed_again,
    find_repeats,
    measure_overlap,
    plan_compactions,
    plan_conversation,
    plan_session,
    read_planned,
)
from palaver.transfer.readers.hermes.records import Marks, Record, clean_text, read_summary, split_sender

Line = tuple[Any, ...]  # role or name, text, time, options


def make_record(role: str, text: str, at: float | None, **options: Any) -> Record:
    names = {"U": "user", "A": "assistant", "T": "tool", "S": "user"}
    record = Record(role=names[role], content=text, where="test", at=at, **options)
    if role == "S":
        record.summary = text
    return record


def make_copy(name: str, lines: list[Line]) -> Copy:
    records = [make_record(line[0], line[1], line[2], **(line[3] if len(line) > 3 else {})) for line in lines]
    return Copy(name, lambda: iter(records))


def fold(*copies: list[Line]) -> list[str]:
    plan = plan_conversation([[make_copy(f"copy {number}", lines) for number, lines in enumerate(copies)]])
    return [
        planned.record.text
        for planned in read_planned(plan)
        if isinstance(planned, PlannedRecord) and planned.action == SHOW
    ]


def make_marks(lines: list[Line]) -> Marks:
    marks = Marks()
    for record in make_copy("", lines).open_records():
        assert isinstance(record, Record)
        marks.add_record(record)
    return marks


CALL = {"tool_calls": [{"id": "call_1", "function": {"name": "look", "arguments": "{}"}}]}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([("U", "ok", 0), ("A", "Done.", 1), ("U", "ok", 20), ("A", "Done.", 21)], 4, id="said twice"),
        pytest.param([("U", "ok", 0), ("A", "Done.", 1), ("U", "ok", 1.1), ("A", "Done.", 1.2)], 2, id="written twice"),
        pytest.param([("U", "ok", 0), ("A", "Done.", 0.01), ("U", "ok", 40), ("A", "Done.", 40.01)], 4, id="two turns"),
        pytest.param([(("U", "ok"), ("A", "Done."))[n % 2] + (n * 0.01,) for n in range(8)], 2, id="four times"),
        pytest.param([("U", "hi", 0), ("U", "hi", 0.004)], 1, id="one message, written twice"),
        pytest.param([("U", "hi", 0), ("U", "hi", 3)], 2, id="one message, said twice"),
        pytest.param(
            [("U", "hi", 0, {"platform_message_id": "1"}), ("U", "hi", 0.01, {"platform_message_id": "2"})],
            2,
            id="two ids on the platform",
        ),
        pytest.param(
            [("U", "hi", 0, {"platform_message_id": "1"}), ("U", "hi", 90, {"platform_message_id": "1"})],
            1,
            id="the same id on the platform",
        ),
        pytest.param(
            [
                line
                for at in (0, 30)
                for line in (("U", "go", at), ("A", "", at, CALL), ("T", "x", at, {"tool_call_id": "call_1"}))
            ],
            3,
            id="the same ids of tool calls",
        ),
        pytest.param([("T", "same", 0), ("T", "same", 0)], 2, id="results of tools without ids"),
        pytest.param([("U", "hi", None), ("U", "hi", None)], 2, id="without times"),
        pytest.param([("U", "hi", 5), ("U", "hi", 4)], 2, id="a clock that goes back"),
        pytest.param(
            [("U", "hi", 0), ("U", "hi", 0.004, {"is_undone": True})], 2, id="an undone message and a new one"
        ),
    ],
)
def test_repeated_writes_are_found_by_evidence(lines: list[Line], expected: int) -> None:
    assert find_repeats(make_marks(lines)).count(0) == expected


FLUSHED: list[Line] = [("U", "go", 10.0), ("A", "Done.", 12.25), ("U", "go", 20.0), ("A", "Done.", 22.5)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(FLUSHED, 4, id="said twice"),
        pytest.param([*FLUSHED, *FLUSHED], 4, id="all of it again"),
        pytest.param([*FLUSHED, *FLUSHED[:2]], 4, id="the beginning again"),
        pytest.param([*FLUSHED, *FLUSHED, *FLUSHED, ("U", "more", 30.0)], 5, id="twice again, and on"),
        pytest.param([*FLUSHED, ("U", "more", 30.0), *FLUSHED, ("U", "more", 30.0)], 5, id="with more"),
        pytest.param(
            [FLUSHED[0], ("A", "oh", 11.5, {"is_undone": True}), *FLUSHED[1:], *FLUSHED],
            5,
            id="without an undone message",
        ),
        pytest.param(
            [("U", "ok", 10.0), ("A", "Done.", 12.25), ("U", "ok", 10.0), ("A", "Done.", 14.5)],
            4,
            id="two messages in the same second",
        ),
        pytest.param([*FLUSHED, *[(role, text, at + 0.5) for role, text, at in FLUSHED]], 8, id="other times"),
        pytest.param([("T", "ok", 10.5), ("A", "so", 10.5), ("T", "ok", 10.5)], 3, id="one time for a whole turn"),
        pytest.param([("U", "go", None), ("A", "Done.", None)] * 2, 4, id="without times"),
    ],
)
def test_messages_that_are_stored_again_with_their_exact_times_are_found(lines: list[Line], expected: int) -> None:
    assert find_flushed_again(make_marks(lines)).count(0) == expected
    if len(lines) > len(FLUSHED) and expected >= len(FLUSHED):
        assert len(fold(lines)) == expected


FAILED: list[Line] = [("U", "one", 10.0), ("U", "two\n\nmore", 20.0), ("U", "three", 30.0), ("A", "Done.", 32.5)]
JOINED: Line = ("U", "one\n\ntwo\n\nmore\n\nthree", 10.0)


def test_messages_that_hermes_has_joined_are_found_in_what_is_stored_again() -> None:
    answer = FAILED[-1]
    said = [*FAILED, ("U", "next", 40.0), ("A", "Yes.", 42.5)]
    assert fold([*said, JOINED, answer, *said[-2:]]) == [text for _, text, _ in said]
    other = (JOINED[0], JOINED[1], 11.0)
    assert len(fold([*said, other, answer])) > len(said)


@pytest.mark.parametrize("first_count", [0, 2])
@pytest.mark.parametrize("new", [[("U", "new", 60.0)], [("A", "Late.", 60.0)], []])
def test_copies_around_a_summary_may_be_joined(first_count: int, new: list[Line]) -> None:
    """What follows the copies directly may be a person's message, too, which is new."""
    said = [*FAILED, *[("UA"[n % 2], f"m{n}", 40.0 + n) for n in range(6)], ("U", "x", 50.0), ("U", "y", 51.0)]
    copies: list[Line] = [("A", "m5", 45.0), ("U", "x\n\ny", 50.0)]
    again = [*[JOINED, FAILED[-1]][:first_count], ("S", "sum", 55.0), *copies, *new]
    plan = plan_conversation([[make_copy("a", said)], [make_copy("b", again)]])
    planned = [each for each in read_planned(plan) if isinstance(each, PlannedRecord)]
    assert [each.record.text for each in planned if each.action == SHOW] == [text for _, text, _ in [*said, *new]]
    assert [each.kept_count for each in planned if each.action == SUMMARIZE] == [3]


def test_copies_around_a_summary_in_place_are_left_to_the_compaction() -> None:
    summary: Line = ("S", "sum", 23.5)
    in_place = [*FLUSHED, FLUSHED[0], summary, *FLUSHED[2:], ("U", "new", 30.5)]
    (first,) = [plan_conversation([[make_copy("a", in_place)]])]
    kept = [each.kept_count for each in read_planned(first) if isinstance(each, PlannedRecord)]
    assert max(kept) == 2
    assert fold(in_place) == ["go", "Done.", "go", "Done.", "new"]
    again = in_place[4:]
    assert find_flushed_again(make_marks([*again, *again])).count(0) == len(again)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("a b c", "a b c", "a b c", id="equal"),
        pytest.param("c d", "a b c d", "a b c d", id="half-migrated"),
        pytest.param("a b c d", "a b", "a b c d", id="the reverse"),
        pytest.param("a c", "a b c", "a b c", id="a message is missing"),
        pytest.param("a b", "c d", "a b c d", id="nothing in common"),
        pytest.param("ok ok ok", "ok ok", "ok ok ok", id="the same words"),
        pytest.param("", "a", "a", id="an empty copy"),
    ],
)
def test_two_copies_are_aligned(first: str, second: str, expected: str) -> None:
    words = expected.split()
    times = {index: index * 40.0 for index in range(len(words))}

    def place(text: str, *, at_end: bool) -> list[Line]:
        chosen = text.split()
        lines, start = [], len(words) - len(chosen) if at_end and words[-len(chosen) or len(words) :] == chosen else 0
        for word in chosen:
            index = next((i for i in range(start, len(words)) if words[i] == word), 0)
            start = index + 1
            lines.append(("U", word, times[index]))
        return lines

    assert fold(place(first, at_end=True), place(second, at_end=False)) == words


def test_a_rewritten_transcript_is_aligned_by_order_alone() -> None:
    """After an undo, older versions gave every row the time of the rewriting, a microsecond apart."""
    said = [("U", "Again", 0.0), ("A", "Done.", 2.0), ("U", "Again", 60.0), ("A", "Done.", 62.0)]
    rewritten = [(role, text, 5_000.0 + number * 1e-6) for number, (role, text, _) in enumerate(said)]
    assert fold(rewritten, said) == ["Again", "Done.", "Again", "Done."]
    assert fold(rewritten) == ["Again", "Done.", "Again", "Done."]
    plan = plan_conversation([[make_copy("state.db", rewritten), make_copy("a.jsonl", said)]])
    times = [planned.record.at for planned in read_planned(plan) if isinstance(planned, PlannedRecord)]
    assert times == [at for _, _, at in said]


def test_equal_words_at_other_times_are_other_messages() -> None:
    first = [("U", "yes", 0.0), ("A", "Done.", 1.0)]
    second = [("U", "yes", 86_400.0), ("A", "Done.", 86_401.0)]
    assert fold(first, second) == ["yes", "Done.", "yes", "Done."]


def test_a_message_that_is_stored_when_it_arrives_is_the_one_that_is_stored_when_its_turn_ends() -> None:
    database = [("U", "ok", 0.0), ("A", "Done.", 300.0), ("U", "ok", 400.0), ("A", "Done.", 900.0)]
    jsonl = [("U", "ok", 300.1), ("A", "Done.", 300.1), ("U", "ok", 900.1), ("A", "Done.", 900.1)]
    assert fold(database, jsonl) == ["ok", "Done.", "ok", "Done."]


# Turns of two equal words, 12 seconds apart: 0 is the first message, 1 its answer, 2 the second message.
EQUAL_TURNS: list[Line] = [("UA"[n % 2], "ok", 10.0 + n // 2 * 12 + n % 2 * 2) for n in range(14)]
# A turn may be missing in a copy, and what follows it then has the same neighbor as another message of the same words.
MIXED_TURNS: list[Line] = [
    ("U", "next", 10.0),
    ("A", "Done.", 13.0),
    ("U", "hi", 3_816.0),
    ("A", "Done.", 3_818.0),
    ("U", "ok", 3_828.0),
    ("A", "ok", 3_830.0),
]


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        pytest.param(EQUAL_TURNS, [[0, 1, 8], [1, 2, 6]], id="two messages after the same answer"),
        pytest.param(EQUAL_TURNS, [[0, 4, 5, 8], [4, 11]], id="two answers after the same message"),
        pytest.param(EQUAL_TURNS, [[3, 6, 7, 11], [0, 7]], id="two messages before the same answer"),
        pytest.param(EQUAL_TURNS, [[2, 5, 9, 12], [5, 13]], id="two answers with other messages between them"),
        pytest.param(MIXED_TURNS, [[1, 4], [3]], id="two answers before the same message"),
        pytest.param(MIXED_TURNS, [[0, 1, 3, 4, 5], [1, 4]], id="one copy has both answers"),
    ],
)
@pytest.mark.parametrize("delay", [0.0, 0.5])
def test_equal_words_next_to_the_same_message_are_told_apart_by_their_times(
    said: list[Line], parts: list[list[int]], delay: float
) -> None:
    """All orders of copies: one that is complete, and others that lack most messages."""
    partial = [[(said[n][0], said[n][1], said[n][2] + delay) for n in part] for part in parts]
    for copies in permutations([said, *partial]):
        assert fold(*copies) == [text for _, text, _ in said]


def test_different_ids_on_the_platform_are_different_messages() -> None:
    first = [("U", "+1", 0.0, {"platform_message_id": "1"})]
    second = [("U", "+1", 0.1, {"platform_message_id": "2"})]
    assert fold(first, second) == ["+1", "+1"]


def test_the_first_copy_gives_the_time_and_the_last_one_the_words() -> None:
    plan = plan_conversation(
        [
            [
                make_copy("state.db", [("U", "[Workspace::v1: /srv]\nHello", 1.25)]),
                make_copy("page", [("U", "Hello", 1.0, {"attachments": ["a.txt"]})]),
            ]
        ]
    )
    (planned,) = read_planned(plan)
    assert isinstance(planned, PlannedRecord)
    assert (planned.record.text, planned.record.at, planned.record.attachments) == ("Hello", 1.25, ["a.txt"])
    assert plan.folded == ("1 message both in state.db and in page: aligned in order",)


def test_copies_around_a_summary_are_dropped_and_counted() -> None:
    lines = [("U", f"m{n}", float(n)) for n in range(6)]
    second = [*lines[:2], ("S", "sum", 6.0), *lines[-3:], ("U", "new", 9.0)]
    marks = make_marks([*lines, *second])
    plan = plan_compactions(marks, {0, 6})
    assert list(plan.actions) == [SHOW] * 6 + [DROP] * 2 + [SUMMARIZE] + [DROP] * 3 + [SHOW]
    assert plan.kept_counts == {8: 3}


def test_a_summary_without_older_messages_keeps_what_stands_before_it() -> None:
    plan = plan_compactions(make_marks([("U", "a", 0), ("S", "sum", 1), ("U", "b", 2)]), {0})
    assert list(plan.actions) == [SHOW, SUMMARIZE, SHOW]


def test_an_equal_message_before_a_summary_is_no_copy_of_the_first_one() -> None:
    """In one session, one message alone is evidence only if it also has the time of the first one."""
    lines = [("U", "ok", 0), ("A", "Done.", 9), ("A", "x", 10), ("U", "ok", 20), ("S", "sum", 21)]
    assert list(plan_compactions(make_marks(lines), {0}).actions) == [SHOW] * 4 + [SUMMARIZE]


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_the_overlap_of_two_lists_is_the_longest_one(end: list[int], beginning: list[int]) -> None:
    assert measure_overlap(end, beginning) == _measure_overlap(end, beginning)


WORDS = st.sampled_from(["ok", "Done.", "hi", "next", "yes"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Line]:
    """What people and the agent say: a few words, again and again, at least ten seconds between turns."""
    lines: list[Line] = []
    at = 1_700_000_000.0
    for question, answer in draw(st.lists(st.tuples(WORDS, WORDS), max_size=12)):
        at += draw(st.floats(10, 4_000))
        lines.append(("U", question, at))
        at += draw(st.floats(1.5, 4))
        lines.append(("A", answer, at))
    return lines


@given(conversations(), st.data())
def test_mirrored_writes_never_lose_or_double_a_message(said: list[Line], data: st.DataObject) -> None:
    """One copy is complete, with turns that are stored up to four times; others lack anything and come a bit later."""
    complete: list[Line] = []
    for start in range(0, len(said), 2):
        turn = said[start : start + 2]
        complete += turn
        at = turn[-1][2]
        for _ in range(data.draw(st.integers(0, 3))):
            for role, text, _ in turn:
                at += 0.003
                complete.append((role, text, at))
    delay = data.draw(st.floats(0, 0.5))
    others = [
        [(role, text, at + delay) for role, text, at in said if data.draw(st.booleans())]
        for _ in range(data.draw(st.integers(0, 2)))
    ]
    copies = [complete, *others]
    random.Random(data.draw(st.integers(0, 5))).shuffle(copies)
    assert fold(*copies) == [text for _, text, _ in said]


@given(conversations(), st.integers(0, 24), st.integers(0, 24))
def test_a_beginning_and_an_end_that_overlap_are_joined(said: list[Line], start: int, end: int) -> None:
    start, end = min(start, len(said)), min(end, len(said))
    if start > end:
        start, end = end, start
    later = [(role, text, at + 0.05) for role, text, at in said]
    assert fold(said[start:], later[:end]) == [text for _, text, _ in said]


@given(conversations(), st.integers(0, 3), st.integers(0, 6), st.booleans())
def test_a_compaction_never_loses_or_doubles_a_message(
    said: list[Line], first_count: int, last_count: int, is_new_session: bool
) -> None:
    middle = len(said) // 2
    before, after = said[:middle], said[middle:]
    first_count = min(first_count, len(before) // 2)
    last = before[len(before) - min(last_count, len(before)) :]
    words = [line[:2] for line in before]
    # By its place alone, a message that has the words of the first or the last one cannot be told from a copy.
    assume(not any(words[:count] == words[len(words) - count :] for count in range(1, len(words) // 2 + 1)))
    assume(_measure_overlap(words, [line[:2] for line in last + after]) == len(last))
    again = [*before[:first_count], ("S", "sum", before[-1][2] + 0.5 if before else 0.0), *last, *after]
    sessions = [[make_copy("a", before)], [make_copy("b", again)]]
    plan = plan_conversation(sessions if is_new_session else [[make_copy("a", before + again)]])
    shown = [each for each in read_planned(plan) if isinstance(each, PlannedRecord)]
    assert [each.record.text for each in shown if each.action == SHOW] == [text for _, text, _ in said]
    assert [each.kept_count for each in shown if each.action == SUMMARIZE] == [len(last)]


def _measure_overlap(end: list[Any], beginning: list[Any]) -> int:
    sizes = range(min(len(end), len(beginning)) + 1)
    return max(size for size in sizes if end[len(end) - size :] == beginning[:size])


def test_a_copy_that_has_changed_since_it_was_planned_does_no_harm() -> None:
    lines = [("U", "a", 0.0), ("A", "b", 5.0)]
    records = [make_record(*line) for line in lines]
    session = plan_session([Copy("x", lambda: iter(records))])
    del records[1:]
    plan = plan_conversation([[Copy("x", lambda: iter(records))]])
    plan.sessions[0] = session
    plan.compactions.actions = bytearray(2)
    assert [each.record.text for each in read_planned(plan) if isinstance(each, PlannedRecord)] == ["a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[CONTEXT COMPACTION — REFERENCE ONLY] Long line.\nThe summary.", ("The summary.", False)),
        ("[CONTEXT SUMMARY]: The summary.\n\n--- END OF CONTEXT SUMMARY — go on ---", ("The summary.", False)),
        (
            "[PRIOR CONTEXT — x]\nold words\n[END OF PRIOR CONTEXT — BELOW]\n[CONTEXT SUMMARY]: New.",
            ("New.", True),
        ),
        ("What is a [CONTEXT SUMMARY]?", None),
    ],
)
def test_summaries_are_recognized(text: str, expected: tuple[str, bool] | None) -> None:
    assert read_summary(text) == expected


def test_what_was_added_for_the_model_is_removed() -> None:
    assert clean_text("user", "[Workspace::v1: /srv/a\\]b]\nHello") == "Hello"
    assert clean_text("assistant", "Yes.<memory-context>secret</memory-context> No.") == "Yes. No."
    assert clean_text("user", "[Note] Hello") == "[Note] Hello"
    assert split_sender("[Ada|42]\nHello") == ("Ada", "42", "Hello")
    assert split_sender("[x](https://example.org) is a link") == ("", None, "[x](https://example.org) is a link")
