"""Tests of `palaver people`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cli.pseudo_terminal import run_in_terminal
from palaver import SessionSource
from palaver.accounts.accounts import Accounts
from palaver.accounts.sign_in import Visitor
from palaver.agent.profiles import CurrentSettings
from palaver.cli.running_servers import RunningServer, announce_server
from palaver.config.agent_rules import TurnRules
from palaver.core.errors import SignInFailed
from palaver.inbox import Inbox
from palaver.people.model import Role
from palaver.sessions.inbound import Inbound
from palaver.testing import ScriptedAgent
from support.people import find_code

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from cli.conftest import Home
    from support.warm_process import WarmLauncher

PASSWORD = "eleven grey herons"
PASSWORD_KEYS = f"{PASSWORD}\n".encode()


def add_members(home: Home, *names: str) -> None:
    with home.open_store() as store:
        people = Accounts(store).open_people(store.get_owner().principal)
        for name in names:
            asyncio.run(people.add(name, Role.MEMBER))  # type: ignore[arg-type]


def sign_in(home: Home, name: str, password: str) -> str:
    """Sign in with a name and a password, and return the person's name."""
    with home.open_store() as store:
        by_password = Accounts(store).sign_in_by_password(name, password, Visitor(address="127.0.0.1"))
        return asyncio.run(by_password).item.name


def test_the_list_shows_everybody_with_their_sign_in_methods(home: Home) -> None:
    home.add_conversation("hello")  # by Ada in a chat, who is a guest
    add_members(home, "Ben")
    roles = {person["name"]: person["role"] for person in home.get_json("people", "list")["people"]}
    assert roles == {"Ada": "guest", "Ben": "member", "owner": "owner"}
    assert " link " in next(line for line in home.get_text("people", "list").splitlines() if line.endswith("Ben"))


@pytest.mark.parametrize(("arguments", "name"), [((), "owner"), (("ben",), "Ben")])
def test_a_password_is_typed_without_echo_and_can_be_used_to_sign_in(
    launcher: WarmLauncher, home: Home, arguments: tuple[str, ...], name: str
) -> None:
    add_members(home, "Ben")
    code, output = run_in_terminal(
        launcher, "--home", str(home.path), "people", "password", *arguments, keys=PASSWORD_KEYS
    )
    assert (code, PASSWORD in output) == (0, False), output
    assert sign_in(home, name, PASSWORD) == name
    with pytest.raises(SignInFailed):
        sign_in(home, name, "eleven green herons")


def test_a_common_password_is_rejected_and_changes_nothing(launcher: WarmLauncher, home: Home) -> None:
    code, output = run_in_terminal(launcher, "--home", str(home.path), "people", "password", keys=b"password123\n")
    assert (code, "too common" in output) == (1, True), output
    assert home.get_json("people", "list")["people"][0]["sign_in_methods"] is None


def test_setting_a_password_needs_a_terminal(home: Home) -> None:
    assert "Run it in a terminal." in home.get_error("people", "password", code=2)


def test_an_unknown_person_gets_no_password_but_a_suggestion(launcher: WarmLauncher, home: Home) -> None:
    add_members(home, "Benedict")
    code, output = run_in_terminal(launcher, "--home", str(home.path), "people", "password", "Benedit")
    assert (code, "Did you mean 'Benedict'?" in output) == (3, True), output


def test_a_guest_gets_no_password(launcher: WarmLauncher, home: Home) -> None:
    home.add_conversation("hello")
    code, output = run_in_terminal(launcher, "--home", str(home.path), "people", "password", "Ada", keys=PASSWORD_KEYS)
    assert (code, "is a guest and can't sign in" in output) == (4, True), output


def start_fake_server(home: Home, network_url: str | None) -> AbstractContextManager[None]:
    home.path.mkdir(exist_ok=True)
    return announce_server(home.path, 8765, RunningServer(url="http://localhost:8765", network_url=network_url))


def test_an_invitation_carries_an_address_that_others_can_reach(home: Home) -> None:
    with start_fake_server(home, "http://192.168.1.20:8765"):
        text = home.get_text("people", "invite", "Ben")
        link = home.get_json("people", "invite", "Cleo", "--role", "owner")["link"]
    assert "Send this link to 'Ben'. It works once, until " in text
    assert "\n  http://192.168.1.20:8765/sign-in#" in text
    assert "this machine only" not in text
    assert link["is_local_only"] is False
    with home.open_store() as store:
        signed_in = asyncio.run(
            Accounts(store).sign_in_by_link(link["url"].partition("#")[2], Visitor(address="127.0.0.1"))
        )
    assert (signed_in.item.name, signed_in.item.role) == ("Cleo", Role.OWNER)


def test_an_invitation_that_works_on_this_machine_only_says_so(home: Home) -> None:
    add_members(home, "Ben")
    with start_fake_server(home, None):
        text = home.get_text("people", "link", "ben")
    assert "\n  http://localhost:8765/sign-in#" in text
    assert "works on this machine only" in text
    assert "serve --host 0.0.0.0`" in text


def test_an_invitation_needs_a_running_server_or_a_public_address(home: Home) -> None:
    assert "Start it in another terminal" in home("people", "invite", "Ben", code=7).stderr
    assert [each["name"] for each in home.get_json("people", "list")["people"]] == ["owner"]
    environment = {"PALAVER_PUBLIC_URL": "https://chat.example.org/"}
    assert "\n  https://chat.example.org/sign-in#" in home("people", "invite", "Ben", env=environment).stdout


# ---- access ------------------------------------------------------------------------------------------------


def ask_for_access(home: Home, user: str) -> str:
    """Let a stranger write on Telegram; return their code."""
    with home.open_store() as store:
        source = SessionSource("telegram", user, user_id=user, user_name=user.title())
        inbox = Inbox(store, CurrentSettings(ScriptedAgent(), TurnRules()))
        return find_code(asyncio.run(inbox.accept(Inbound(source=source, content="hello"))).reply)


def test_requests_are_listed_approved_and_denied(home: Home) -> None:
    assert home.get_text("people", "requests") == "There are no requests for access.\n"
    code = ask_for_access(home, "grace")
    [request] = home.get_json("people", "requests")["requests"]
    assert (request["platform"], request["account"], request["name"]) == ("telegram", "grace", "Grace")
    assert code not in home.get_text("people", "requests")
    assert home.get_text("people", "approve", code.lower(), "--as", "guest") == "'Grace' is now a guest.\n"
    assert "Request not found" in home.get_error("people", "approve", code, code=3)
    ask_for_access(home, "mallory")
    [request] = home.get_json("people", "requests")["requests"]
    assert home.get_text("people", "deny", request["id"]) == "Denied 'Mallory'.\n"


def test_roles_are_changed_and_accounts_linked_and_separated(home: Home) -> None:
    home.get_text("people", "approve", ask_for_access(home, "grace"))
    assert home.get_text("people", "role", "Grace", "owner") == "'Grace' is now an owner.\n"
    assert home.get_text("people", "remove", "grace") == "Removed 'Grace'.\n"
    home.get_text("people", "approve", ask_for_access(home, "me"), "--as", "me")
    owner = next(each for each in home.get_json("people", "list")["people"] if each["role"] == "owner")
    assert owner["chat_accounts"] == [{"platform": "telegram", "account": "me"}]
    assert "telegram:me" in home.get_text("people", "list")
    unlinked = home.get_text("people", "unlink", "owner", "telegram")
    assert unlinked.startswith("Unlinked telegram from 'owner'. It has back what it had before the link;")
    assert "no linked account" in home.get_error("people", "unlink", "owner", "telegram", code=3)
