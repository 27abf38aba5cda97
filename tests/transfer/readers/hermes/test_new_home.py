"""A home of hermes-agent 0.19.0: what comes in is what people saw there."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from palaver.sessions.model import EndReason
from palaver.transfer.imported import ImportedAccount, ImportedHomeChannel, ImportedJob, ImportedMemory, ImportedMessage

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def home(read_home: Callable[[str], Any]) -> Any:
    return read_home("hermes-0.19.0")


def test_every_conversation_has_exactly_what_was_said(home: Any) -> None:
    seen = {name: said for name, said in home.truth["seen"].items() if name != "rewound"}
    for origin_id, said in seen.items():
        expected = [[role, text.removeprefix("[Bo] ")] for role, text, *_ in said]
        assert home.texts(origin_id) == expected, origin_id
    assert {item.origin_id for item in home.conversations} == seen.keys()


def test_what_the_program_itself_shows_is_there(home: Any) -> None:
    shown = home.truth["shown"]
    whatsapp = home.truth["whatsapp"]
    assert home.texts(whatsapp) == [[each["role"], each["content"]] for each in shown[whatsapp]]
    # It shows a turn that it stored twice as two turns; people saw one.
    dm = home.truth["dm"]
    texts = [each["content"] for each in shown[dm] if isinstance(each["content"], str) and each["content"]]
    assert texts.count("It is on your list.") == 2
    assert home.texts(dm).count(["assistant", "It is on your list."]) == 1


def test_two_real_answers_with_the_same_word_stay_two(home: Any) -> None:
    assert home.texts(home.truth["dm"]).count(["assistant", "Done."]) == 2


def test_the_report_says_what_was_folded_and_why(home: Any) -> None:
    (folded,) = home.conversation(home.truth["dm"]).folded
    assert folded == "4 messages written again to state.db: the same order, at once or with the same times or ids"


def test_an_undone_turn_comes_in_hidden(home: Any) -> None:
    assert home.texts(home.truth["dm"], hidden=True) == home.truth["seen"]["rewound"]


def test_tools_reasoning_and_images_are_kept(home: Any) -> None:
    messages = [entry for entry in home.entries[home.truth["dm"]] if isinstance(entry, ImportedMessage)]
    call, result = messages[1].message.to_dict(), messages[2].message.to_dict()
    assert call["tool_calls"][0]["function"] == {"name": "switch", "arguments": '{"room":"kitchen","on":false}'}
    assert call["reasoning"] == "Kitchen, off."
    assert (result["tool_call_id"], result["tool_name"], result["content"]) == ("call_k1", "switch", "ok")
    (image,) = next(entry.files for entry in messages if entry.files)
    assert b"".join(image.open_chunks()).startswith(b"\x89PNG")
    assert messages[0].message.platform_message_id == "501"


def test_a_chain_of_compactions_is_one_conversation(home: Any) -> None:
    root = home.truth["chain"][0]
    conversation = home.conversation(root)
    assert home.compactions(root) == [
        ("They collect ideas for a trip to Graz.", 4),
        ("Trip to Graz, leaving on Friday.", 4),
    ]
    assert conversation.title == "Trip to Graz"
    assert "3 sessions that continue each other after compactions are one conversation" in conversation.folded
    assert conversation.created_at == datetime.fromtimestamp(1772600219.008, UTC)


def test_names_of_senders_become_authors(home: Any) -> None:
    messages = [entry.message for entry in home.entries[home.truth["chain"][0]] if isinstance(entry, ImportedMessage)]
    authors = [(message.author.name, message.author.id) for message in messages if message.author]
    assert authors[:2] == [("Ada", "111"), ("Bo", None)]


def test_a_compaction_in_place_keeps_every_message_once(home: Any) -> None:
    assert home.compactions(home.truth["cli"]) == [("Five steps are done.", 4), ("Eight steps are done.", 2)]
    assert home.conversation(home.truth["cli"]).workspace == "/home/ada/project"


def test_a_branch_names_its_parent_and_keeps_its_own_title(home: Any) -> None:
    branch = home.conversation(home.truth["branch"])
    assert (branch.parent_origin_id, branch.title) == (home.truth["cli"], "Build script #2")


def test_chats_go_on_with_the_session_that_hermes_was_on(home: Any) -> None:
    old, new = home.truth["discord"]
    current = {item.origin_id: item.source.to_dict() for item in home.conversations if item.is_current}
    assert current.keys() == {home.truth["dm"], home.truth["chain"][0], new, home.truth["whatsapp"]}
    assert current[home.truth["chain"][0]]["thread_id"] == "7"
    assert home.conversation(old).end_reason is EndReason.MANUAL
    assert home.conversation(old).archived


def test_chats_have_the_form_of_our_adapters(home: Any) -> None:
    discord = home.conversation(home.truth["discord"][1]).source
    assert (discord.chat_id, discord.thread_id, discord.chat_type) == ("8000", "9001", "thread")
    whatsapp = home.conversation(home.truth["whatsapp"]).source
    assert (whatsapp.platform, whatsapp.chat_id) == ("whatsapp-web", "4366012345")


def test_a_conversation_of_a_terminal_or_a_job_belongs_to_the_person_who_imports(home: Any) -> None:
    assert home.conversation(home.truth["cli"]).source is None
    assert home.conversation(home.truth["cron"]).source is None


def test_usage_is_counted_for_each_model(home: Any) -> None:
    usage = home.conversation(home.truth["dm"]).usage
    assert [(each.model, each.provider, each.input_tokens, each.cost) for each in usage] == [
        ("gpt-5", "openai", 1200, Decimal("0.0123")),
        ("claude-sonnet-5", "anthropic", 300, Decimal("0.004")),
    ]
    assert usage[-1].last_prompt_tokens == 1500
    assert len({each.turn_id for each in usage}) == 2


def test_people_of_allow_lists_and_pairings_come_once(home: Any) -> None:
    accounts = {(each.platform, each.user_id): each for each in home.all(ImportedAccount)}
    assert accounts.keys() == {("telegram", "111"), ("telegram", "112"), ("discord", "77")}
    assert (accounts["telegram", "111"].name, accounts["telegram", "111"].is_owner) == ("Ada", True)
    assert accounts["discord", "77"].name == "Bo"


def test_home_channels_come_in_as_the_chats_that_they_are(home: Any) -> None:
    channels = {str(each.source.platform): each.source for each in home.all(ImportedHomeChannel)}
    assert channels.keys() == {"telegram", "discord", "whatsapp-web", "matrix"}
    assert (channels["telegram"].chat_id, channels["telegram"].user_id) == ("111", "111")
    assert channels["matrix"].chat_id == "!abc:server.org"


def test_each_entry_of_the_memory_files_is_a_memory(home: Any) -> None:
    assert [each.text for each in home.all(ImportedMemory)] == [
        "The printer is in the hall.\nIt needs A4.",
        "Backups run at night.",
        "Ada prefers short answers. See § 5.",
    ]


def test_jobs_come_in_with_schedule_targets_and_runs(home: Any) -> None:
    jobs = {job.name: job for job in home.all(ImportedJob)}
    morning = jobs["Morning"]
    assert (morning.schedule, morning.timezone, morning.targets) == ("0 7 * * 1-5", "Europe/Vienna", ("origin",))
    assert morning.origin.user_id == "111"
    assert (jobs["Disk"].schedule, jobs["Disk"].runs_left) == ("every 2h", 5)
    assert jobs["Disk"].targets == ("telegram", "discord:8000:9001")
    assert (jobs["Far away"].schedule, jobs["Far away"].targets) == ("2036-02-03T13:00:00Z", ("local",))
    assert set(jobs["All"].targets) == {"telegram", "discord", "whatsapp-web", "matrix"}
    assert jobs["Paused"].targets == ("matrix:!abc:server.org",)


def test_jobs_that_cannot_come_in_say_why(home: Any) -> None:
    problems = {each.where: each.what for each in home.problems}
    assert "at least 5 minutes" in problems["cron/jobs.json, job Every minute"]
    assert "script" in problems["cron/jobs.json, job Script only"]
    assert problems["cron/jobs.json, job All"] == "The job comes in without the skill “news”."


def test_no_secret_comes_in(home: Any) -> None:
    assert "secret" not in repr(home.items)
    assert "secret" not in repr(home.entries)


def test_left_out_is_what_hermes_does_not_list_either(home: Any) -> None:
    assert any("Sub-agent sessions are left out" in each.what for each in home.problems)


def test_a_second_run_names_everything_the_same(
    read_home: Callable[[str], Any], read_folder: Any, tmp_path: Any
) -> None:
    first = read_home("hermes-0.19.0")
    second = read_folder(tmp_path / "hermes-0.19.0")

    def list_ids(home: Any) -> list[str]:
        return [getattr(item, "origin_id", repr(item)) for item in home.items]

    assert list_ids(first) == list_ids(second)
    assert first.entries.keys() == second.entries.keys()
    assert all(
        [repr(each) for each in first.texts(name)] == [repr(each) for each in second.texts(name)]
        for name in first.entries
    )


def test_the_target_local_stays_a_file(read_home: Callable[[str], Any]) -> None:
    home = read_home("settings-0.19.0")
    jobs = {job.name: job for job in home.all(ImportedJob)}
    assert jobs["Disk log"].targets == ("local",)
    assert jobs["No place"].targets == ("telegram",)  # there, a job without an origin goes to a home channel
    assert (jobs["No place"].is_paused, jobs["Trip"].is_paused) == (True, False)


def test_skills_of_a_job_are_named(read_home: Callable[[str], Any]) -> None:
    problems = {each.where: each.what for each in read_home("settings-0.19.0").problems}
    assert problems["cron/jobs.json, job Weather"] == (
        "The job comes in without the skills “weather”, “maps” and its own list of tools."
    )


def test_runs_of_jobs_keep_the_name_of_their_job_and_are_in_its_project(read_home: Callable[[str], Any]) -> None:
    home = read_home("settings-0.19.0")
    runs = [home.conversation(name) for name in home.truth["runs"]]
    assert [(run.auto_title, run.title) for run in runs] == [("Disk log", None), ("Disk log", None), ("Weather", None)]
    removed = home.conversation(home.truth["run_without_job"])
    assert (removed.auto_title, removed.title) == (None, None)
    assert {run.project.name for run in (*runs, removed)} == {"Scheduled"}
