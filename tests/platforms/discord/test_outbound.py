"""What is sent to Discord: its own Markdown, buttons, mentions, commands."""

from __future__ import annotations

import pytest

from palaver.core.source import Platform
from palaver.delivery.adapter import OutgoingMessage
from palaver.inbox.registry import COMMANDS
from palaver.platforms.discord.client import describe_account
from palaver.platforms.discord.outbound import build_commands, build_edit, build_message, render_markdown
from palaver.sessions.delivery import Address, Button

from .discord_data import ALL_PERMISSIONS, BOT, make_application
from .discord_schemas import list_problems

ADDRESS = Address(Platform.DISCORD, "5", "6")


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("**bold** _it_ `a | b` [link](https://example.org)", "**bold** _it_ `a | b` [link](https://example.org)"),
        ("# One\n### Three\n#### Four\n###### Six", "# One\n### Three\n**Four**\n**Six**"),
        ("Title\n=====\n\ntext", "# Title\n\ntext"),
        ("above\n\n---\n\nbelow", "above\n\n────────────\n\nbelow"),
        ("![a cat](https://example.org/c.png) and `![code](x)`", "[a cat](https://example.org/c.png) and `![code](x)`"),
        ("- [ ] open\n- [x] done", "- ☐ open\n- ☑ done"),
        ("```\n#### not\n| a | b |\n---\n- [ ] x\n```", "```\n#### not\n| a | b |\n---\n- [ ] x\n```"),
        ("~~~py\nx = 1\n~~~", "```py\nx = 1\n```"),
        ("````md\n```py\nx\n```\n````\nend", "```md\n`\u200b``py\nx\n`\u200b``\n```\nend"),
        ("> ~~~~\n> x ~~~\n> ~~~~\n\n~~~\nopen ```", "> ```\n> x ~~~\n> ```\n\n```\nopen `\u200b``"),
        ("1 * 2 * 3 and a stray ** here", "1 * 2 * 3 and a stray ** here"),
    ],
)
def test_markdown_is_changed_only_where_discord_does_not_show_it(markdown: str, shown: str) -> None:
    assert render_markdown(markdown) == [shown]


def test_a_table_is_aligned_in_a_block_of_code() -> None:
    [shown] = render_markdown("Look:\n\n| Name | **Years** |\n|---|---|\n| Ada | 36 |\n| 日本 | `9` |\n\nDone.")
    assert shown == "Look:\n\n```\nName  Years\n────  ─────\nAda   36\n日本  9\n```\n\nDone."


@pytest.mark.parametrize("cell", ["w" * 80, "[site](https://example.org)"])
def test_a_table_that_is_wide_or_has_links_becomes_a_list(cell: str) -> None:
    [shown] = render_markdown(f"| Name | Text |\n|---|---|\n| Ada | {cell} |\n| Ben | |")
    assert shown == f"- **Ada**\n  - Text: {cell}\n- **Ben**"


def test_long_answers_are_split_below_the_limit_and_code_goes_on_as_code() -> None:
    bodies = render_markdown("Intro\n\n```py\n" + "value = 1\n" * 500 + "```\n")
    assert len(bodies) > 2
    assert all(len(body) <= 2000 for body in bodies)
    assert all(body.count("```") == 2 for body in bodies)
    assert "".join(bodies).count("value = 1") == 500


@pytest.mark.parametrize(
    ("mark", "start"), [("> ", ""), (">>> ", ""), (">>> ", "```\n>>> code\n```\n\n"), ("> > ", "")]
)
def test_a_quote_stays_a_quote_in_every_message(mark: str, start: str) -> None:
    first, *others = render_markdown(f"{start}Ada wrote:\n\n{mark}" + "word " * 1000)
    assert len(others) > 1
    assert mark in first.removeprefix(start)
    assert all(len(body) <= 2000 and body.startswith(mark) and body.count(mark) == 1 for body in others)


def test_all_that_follows_an_open_quote_stays_quoted_and_code_quotes_nothing() -> None:
    paragraphs = "\n\n".join("word " * 100 for _ in range(12))
    quoted = render_markdown(f">>> first\n\n{paragraphs}")
    assert len(quoted) > 2
    assert all(body.startswith(">>> ") for body in quoted)
    plain = render_markdown(f"```\n>>> prompt\n```\n\n{paragraphs}")
    assert not any(body.startswith(">") for body in plain)


def test_odd_texts_are_rendered_in_time_that_grows_with_their_length() -> None:
    marks = ("| a ", "![", "- [ ] ", "#### x\n", ">>> ", "~~~\n")
    for text in (*(mark * 6_000 for mark in marks), "`" * 9_000 + "!["):
        assert render_markdown(text)


def test_whatever_the_agent_writes_no_other_person_is_notified() -> None:
    message = OutgoingMessage(key="d_1.1", address=ADDRESS, body="@everyone <@&7> <@8>", reply_to="77")
    fields = build_message(message)
    assert fields["allowed_mentions"] == {"parse": [], "replied_user": True}
    assert fields["message_reference"] == {"message_id": "77", "fail_if_not_exists": False}
    assert (fields["nonce"], fields["enforce_nonce"]) == ("d_1.1", True)
    assert list_problems("CreateMessage", fields) == []
    assert build_edit(message)["allowed_mentions"]["parse"] == []


def test_the_reply_to_a_slash_command_refers_to_no_message() -> None:
    fields = build_message(OutgoingMessage(key="d_1.1", address=ADDRESS, body="Done", reply_to="command:9"))
    assert "message_reference" not in fields


def test_buttons_are_in_rows_of_five_and_an_edit_removes_them() -> None:
    buttons = [Button(f"B{number}", f"stop:{number}") for number in range(7)]
    message = OutgoingMessage(key="d_1.1", address=ADDRESS, body="x", buttons=buttons)
    assert [len(row["components"]) for row in build_message(message)["components"]] == [5, 2]
    assert build_edit(OutgoingMessage(key="d_1.1", address=ADDRESS, body="x"))["components"] == []


def test_all_commands_fit_the_menu() -> None:
    commands = build_commands(COMMANDS)
    assert len(commands) == len(COMMANDS)
    assert list_problems("PutCommands", commands) == []
    by_name = {command["name"]: command for command in commands}
    assert by_name["steer"]["options"][0]["required"]
    assert not by_name["new"]["options"][0]["required"]
    assert "options" not in by_name["status"]


GUILD = {"id": "1", "name": "Engines", "permissions": ALL_PERMISSIONS}


def test_an_account_that_lacks_nothing_has_no_warnings() -> None:
    assert describe_account(BOT, make_application(), [GUILD]).warnings == ()
    admin = GUILD | {"permissions": str(1 << 3)}
    assert describe_account(BOT, make_application(), [admin]).warnings == ()


@pytest.mark.parametrize(
    ("application", "guilds", "words"),
    [
        ({"flags": 0}, [GUILD], ["Message Content Intent", "Privileged Gateway Intents", "Save Changes"]),
        ({"interactions_endpoint_url": "https://x"}, [GUILD], ["Interactions Endpoint URL", "General Information"]),
        ({}, [], ["in no server", "https://discord.com/oauth2/authorize?client_id=", "Authorize"]),
        ({}, [GUILD | {"permissions": str(1 << 10)}], ['"Engines"', "Read Message History", "Server Settings"]),
    ],
)
def test_what_is_missing_is_named_with_the_clicks(
    application: dict[str, object], guilds: list[dict[str, str]], words: list[str]
) -> None:
    [warning] = describe_account(BOT, make_application(**application), guilds).warnings
    assert all(word in warning for word in words)
