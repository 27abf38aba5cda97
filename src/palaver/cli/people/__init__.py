"""`palaver people`: who uses this gateway and how they sign in.

The person at the terminal runs the gateway, so they may invite people, set anyone's password, and erase people.
"""

from __future__ import annotations

import click

from palaver.cli.people.change_commands import (
    approve_request,
    change_role,
    deny_request,
    erase,
    remove_person,
    set_timezone,
    unlink_account,
)
from palaver.cli.people.invitation_commands import create_link, invite, password
from palaver.cli.people.list_commands import list_people, list_requests


@click.group()
def people() -> None:
    """Manage the people who use this gateway.

    PERSON is a name or an id.
    """


people.add_command(list_people)
people.add_command(invite)
people.add_command(create_link)
people.add_command(change_role)
people.add_command(set_timezone)
people.add_command(remove_person)
people.add_command(erase)
people.add_command(unlink_account)
people.add_command(list_requests)
people.add_command(approve_request)
people.add_command(deny_request)
people.add_command(password)
