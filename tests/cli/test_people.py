"""People, from the terminal: who can sign in, and passwords that nobody sees."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cli.test_process import in_a_terminal
from palaver.domain.errors import SignInRefused
from palaver.domain.person import Role
from palaver.services.accounts.accounts import Accounts
from palaver.services.accounts.sign_in import Visitor

if TYPE_CHECKING:
    from cli.conftest import Home

SECRET = "eleven grey herons"
TYPED = f"{SECRET}\n".encode()


def let_in(home: Home, *names: str) -> None:
    with home.store() as store:
        everybody = Accounts(store).people_seen_by(store.owner().principal)
        for name in names:
            asyncio.run(everybody.add(name, Role.MEMBER))  # type: ignore[arg-type]


def signs_in(home: Home, name: str, password: str) -> str:
    """Whose name and password this is."""
    with home.store() as store:
        by_password = Accounts(store).sign_in_by_password(name, password, Visitor(address="127.0.0.1"))
        return asyncio.run(by_password).made.name


def test_everybody_is_listed_with_how_they_sign_in(home: Home) -> None:
    home.said("hello")  # by somebody in a chat, who is a guest
    let_in(home, "Ben")
    listed = {each["name"]: each for each in home.json("people", "list")["people"]}
    assert {name: each["role"] for name, each in listed.items()} == {"Ada": "guest", "Ben": "member", "owner": "owner"}
    assert "a link" in next(line for line in home.text("people", "list").splitlines() if line.endswith("Ben"))


@pytest.mark.parametrize(("named", "name"), [((), "owner"), (("ben",), "Ben")])
def test_a_password_is_typed_unseen_and_then_signs_in(home: Home, named: tuple[str, ...], name: str) -> None:
    let_in(home, "Ben")
    code, shown = in_a_terminal("--home", str(home.path), "people", "password", *named, keys=TYPED)
    assert (code, SECRET in shown) == (0, False), shown
    assert signs_in(home, name, SECRET) == name
    with pytest.raises(SignInRefused):
        signs_in(home, name, "eleven green herons")


def test_a_password_that_anybody_would_try_is_refused_and_changes_nothing(home: Home) -> None:
    code, shown = in_a_terminal("--home", str(home.path), "people", "password", keys=b"password123\n")
    assert (code, "one of the first that anybody would try" in shown) == (1, True), shown
    assert home.json("people", "list")["people"][0]["password"] is False


def test_where_nobody_can_be_asked_no_password_is_taken(home: Home) -> None:
    assert "run this at a terminal" in home.error("people", "password", code=2)


def test_somebody_who_is_not_there_is_not_given_a_password(home: Home) -> None:
    let_in(home, "Benedict")
    code, shown = in_a_terminal("--home", str(home.path), "people", "password", "Benedit")
    assert (code, "did you mean 'Benedict'?" in shown) == (3, True), shown


def test_a_guest_is_not_given_a_password(home: Home) -> None:
    home.said("hello")
    code, shown = in_a_terminal("--home", str(home.path), "people", "password", "Ada", keys=TYPED)
    assert (code, "guests cannot sign in" in shown) == (4, True), shown
