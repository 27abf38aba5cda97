"""Tests of `palaver people`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cli.pseudo_terminal import run_in_terminal
from palaver.domain.errors import SignInFailed
from palaver.domain.person import Role
from palaver.services.accounts.accounts import Accounts
from palaver.services.accounts.sign_in import Visitor

if TYPE_CHECKING:
    from cli.conftest import Home

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
    home: Home, arguments: tuple[str, ...], name: str
) -> None:
    add_members(home, "Ben")
    code, output = run_in_terminal("--home", str(home.path), "people", "password", *arguments, keys=PASSWORD_KEYS)
    assert (code, PASSWORD in output) == (0, False), output
    assert sign_in(home, name, PASSWORD) == name
    with pytest.raises(SignInFailed):
        sign_in(home, name, "eleven green herons")


def test_a_common_password_is_rejected_and_changes_nothing(home: Home) -> None:
    code, output = run_in_terminal("--home", str(home.path), "people", "password", keys=b"password123\n")
    assert (code, "too common" in output) == (1, True), output
    assert home.get_json("people", "list")["people"][0]["sign_in_methods"] is None


def test_setting_a_password_needs_a_terminal(home: Home) -> None:
    assert "Run it in a terminal." in home.get_error("people", "password", code=2)


def test_an_unknown_person_gets_no_password_but_a_suggestion(home: Home) -> None:
    add_members(home, "Benedict")
    code, output = run_in_terminal("--home", str(home.path), "people", "password", "Benedit")
    assert (code, "Did you mean 'Benedict'?" in output) == (3, True), output


def test_a_guest_gets_no_password(home: Home) -> None:
    home.add_conversation("hello")
    code, output = run_in_terminal("--home", str(home.path), "people", "password", "Ada", keys=PASSWORD_KEYS)
    assert (code, "is a guest and can't sign in" in output) == (4, True), output
