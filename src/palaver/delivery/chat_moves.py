"""Moves everything of a chat that has got another id on its platform, such as a Telegram group that was upgraded.

Conversations, open turns, deliveries on their way, the home channel, jobs, access and the messages of the group go on
under the new id. Ids of messages usually do not: in the new chat the platform counts them from the beginning, so an old
id would name another message there. Doing it twice changes nothing.

These tables hold a chat: by its id, `chat_access`, `group_message` and `inbound_message`; by an address, `turn`,
`delivery`, `preview` and `dead_target`; by the key of its lane or by a source, `lane`, `lane_move`, `session`,
`home_channel`, the identities of people, and `job` in its origin, its targets and a proposed change of them.
"""

from __future__ import annotations

import json
from dataclasses import replace

from palaver.core.engines.base import Transaction, fetch_value
from palaver.core.errors import InvalidInput
from palaver.core.source import ChatType, Platform, SessionSource, decode_source, encode_source
from palaver.core.text import encode_json
from palaver.delivery import table as deliveries
from palaver.people import table as people
from palaver.sessions import lanes_table as lanes, table as sessions
from palaver.sessions.delivery import Address
from palaver.sessions.keys import list_chat_key_prefixes, replace_participant
from palaver.sessions.model import EndReason
from palaver.sessions.targets import format_chat_target, parse_target

_AFTER_COLON = ";"  # the character after ":": what begins with `key:` is less than `key;`
# A range of an index: the key itself, and every key that continues it with a colon.
_IS_KEY = "(key = $1 OR (key >= $1 || ':' AND key < $1 || ';'))"
_IS_ADDRESS = "(address = $1 OR (address >= $1 || ':' AND address < $1 || ';'))"
_HAS_ADDRESS = "(address = $1 OR substr(address, 1, length($1) + 1) = $1 || ':')"  # for columns without such an index
_NEW_ADDRESS = "$2 || substr(address, length($1) + 1)"
_IS_ACCOUNT = "platform = $1 AND account = $2"


def move_chat(
    tx: Transaction,
    platform: str,
    account: str,
    old_chat_id: str,
    new_chat_id: str,
    now: int,
    *,
    keeps_message_ids: bool = False,
) -> bool:
    """Let everything of a chat go on under its new id; return whether there was anything.

    If the new chat has a conversation of its own already, that one stays where it is, and the old one is the
    conversation before it: `/restore` and `/resume` lead to it. With `keeps_message_ids`, a message that came before is
    recognized in the new chat, too.
    """
    if old_chat_id == new_chat_id:
        return False
    old_address = str(Address(Platform(platform), old_chat_id, account=account))
    new_address = str(Address(Platform(platform), new_chat_id, account=account))
    tx.lock_name(f"chat:{old_address}")
    old_chat = (platform, account, old_chat_id)
    moved = 0
    for agent in _list_agents(tx):
        old_keys = list_chat_key_prefixes(agent, platform, account, old_chat_id)
        new_keys = list_chat_key_prefixes(agent, platform, account, new_chat_id)
        for old_key, new_key in zip(old_keys, new_keys, strict=True):
            moved += _move_jobs(tx, old_key, old_chat, new_chat_id)
            moved += _move_sessions(tx, old_key, new_key, new_chat_id)
            moved += _move_lanes(tx, old_key, new_key, new_chat_id, now)
    moved += _move_deliveries(tx, old_address, new_address, now)
    move_turns = f"UPDATE turn SET address = {_NEW_ADDRESS}, reply_to = NULL"
    is_open = f"state IN ('queued', 'running') AND {_HAS_ADDRESS}"
    moved += tx.execute(f"{move_turns} WHERE {is_open}", old_address, new_address)
    moved += _move_chat_ids(tx, old_chat, new_chat_id, keeps_message_ids=keeps_message_ids)
    moved += _move_home_channel(tx, platform, account, old_chat_id, new_chat_id)
    # A growing message stays behind; the platform has just said where the chat is, so it can be reached there.
    for table in ("preview", "dead_target"):
        moved += tx.execute(f"DELETE FROM {table} WHERE {_IS_ADDRESS}", old_address)
    return moved > 0


def has_lane_in_chat(tx: Transaction, platform: str, account: str, chat_id: str) -> bool:
    """Return whether a person with access has talked to the agent in this chat."""
    return any(
        tx.fetch_one(f"SELECT 1 FROM lane WHERE {_IS_KEY} LIMIT 1", prefix) is not None
        for agent in _list_agents(tx)
        for prefix in list_chat_key_prefixes(agent, platform, account, chat_id)
    )


def _list_agents(tx: Transaction) -> list[str]:
    """List the beginnings of keys, such as `agent:main`: one step in the index for each agent, however many lanes."""
    agents: list[str] = []
    select = "SELECT key FROM lane WHERE key >= $1 ORDER BY key LIMIT 1"
    key: str | None = fetch_value(tx, select, "agent:")
    while key is not None:
        agent = ":".join(key.split(":")[:2])
        agents.append(agent)
        key = fetch_value(tx, select, agent + _AFTER_COLON)
    return agents


def _move_sessions(tx: Transaction, old_key: str, new_key: str, new_chat_id: str) -> int:
    rows = tx.fetch_all(f"SELECT no, key, source FROM session WHERE {_IS_KEY}", old_key)
    for no, key, source in rows:
        moved_key, moved_source = new_key + key[len(old_key) :], _move_source(source, new_chat_id)
        tx.execute("UPDATE session SET key = $2, source = $3 WHERE no = $1", no, moved_key, moved_source)
    return len(rows)


def _move_lanes(tx: Transaction, old_key: str, new_key: str, new_chat_id: str, now: int) -> int:
    rows = tx.fetch_all(f"SELECT key, session_no, source FROM lane WHERE {_IS_KEY} {tx.for_update}", old_key)
    for key, session_no, source in rows:
        moved_key = new_key + key[len(old_key) :]
        _rename_lane(tx, key, moved_key, _move_source(source, new_chat_id), now)
        _move_direct_messages(tx, decode_source(source), new_chat_id)
        if session_no is not None:
            _keep_reachable(tx, moved_key, session_no, now)
    return len(rows)


def _rename_lane(tx: Transaction, key: str, new_key: str, new_source: str, now: int) -> None:
    """Let a lane go on under another key; one that is there already stays."""
    columns = "audience_no, shared, group_message_no, session_no"
    copy = f"SELECT $2, $3, $4, {columns} FROM lane WHERE key = $1 ON CONFLICT DO NOTHING"
    tx.execute(f"INSERT INTO lane (key, source, updated_at, {columns}) {copy}", key, new_key, new_source, now)
    tx.execute("UPDATE lane_move SET lane_key = $2 WHERE lane_key = $1", key, new_key)
    tx.execute("DELETE FROM lane WHERE key = $1", key)


def _move_direct_messages(tx: Transaction, source: SessionSource, new_chat_id: str) -> None:
    """Remember the new chat as the one of a person's direct messages, if the old one was."""
    person_row = people.find_by_source(tx, source) if source.chat_type is ChatType.DM else None
    known = person_row.dm_source if person_row else None
    if known is None:
        return
    dm_source = decode_source(known)
    if (dm_source.account, dm_source.chat_id) == (source.account, source.chat_id):
        people.remember_dm_source(tx, replace(dm_source, chat_id=new_chat_id), known)


def _keep_reachable(tx: Transaction, key: str, session_no: int, now: int) -> None:
    """If the lane of the new chat is on another session, let it be on the old one, or have it as the one before."""
    row = tx.fetch_one(
        "SELECT l.session_no, s.active_at FROM lane l LEFT JOIN session s ON s.no = l.session_no WHERE l.key = $1", key
    )
    current_no, active_at = row or (None, None)
    if current_no == session_no:
        return
    if active_at is None:  # nothing was said there yet
        tx.execute("UPDATE lane SET session_no = $2, updated_at = $3 WHERE key = $1", key, session_no, now)
        return
    sessions.end(tx, session_no, EndReason.SWITCHED, now)
    lanes.record_move(tx, key, session_no, current_no, EndReason.SWITCHED, now)


def move_participant(tx: Transaction, person_id: str, platform: str, old_id: str, new_id: str, now: int) -> None:
    """Let a person's own lanes in groups go on under their new id, and name it in those that were moved.

    Where they have a lane under the new id already, that one stays.
    """
    sql = """SELECT l.key, l.source, l.audience_no FROM person p
        JOIN lane l ON l.audience_no = p.audience_no WHERE (p.id = $1 OR p.merged_into = $1) AND l.shared = 0"""
    rows = tx.fetch_all(sql, person_id)
    for key, encoded, audience_no in rows:
        source = decode_source(encoded)
        if source.platform != platform or old_id not in {source.user_id, source.user_id_alt}:
            continue
        new_source = encode_source(people.replace_user(source, old_id, new_id))
        new_key = replace_participant(key, old_id, new_id)
        if new_key is None:
            tx.execute("UPDATE lane SET source = $2 WHERE key = $1", key, new_source)
            continue
        _rename_lane(tx, key, new_key, new_source, now)
        tx.execute("UPDATE session SET key = $2 WHERE key = $1 AND audience_no = $3", key, new_key, audience_no)


def _move_source(source: str, new_chat_id: str) -> str:
    return encode_source(replace(decode_source(source), chat_id=new_chat_id))


def _move_deliveries(tx: Transaction, old_address: str, new_address: str, now: int) -> int:
    """Move the open deliveries. At each address they are sent in the order in which they were queued."""
    rows = tx.fetch_all(
        "SELECT no, address FROM delivery d"
        f" WHERE {_IS_ADDRESS} AND state IN ('pending', 'sending')"
        # No two answers of one turn at one address.
        " AND NOT EXISTS (SELECT 1 FROM delivery o WHERE o.turn_no = d.turn_no"
        " AND o.address = $2 || substr(d.address, length($1) + 1))",
        old_address,
        new_address,
    )
    addresses = set()
    for no, address in rows:
        moved_address = new_address + address[len(old_address) :]
        addresses.add(moved_address)
        tx.execute("UPDATE delivery SET address = $2, reply_to = NULL WHERE no = $1", no, moved_address)
        tx.execute("UPDATE delivery_part SET edits_id = NULL WHERE delivery_no = $1 AND state = 'pending'", no)
    for address in sorted(addresses):
        tx.lock_name(address)
        deliveries.restore_order(tx, address, now)
    return len(rows)


def _move_chat_ids(
    tx: Transaction, old_chat: tuple[str, str, str], new_chat_id: str, *, keeps_message_ids: bool
) -> int:
    """Move what is stored by the id of the chat. Where the new chat has the same already, its own stays."""
    if not tx.fetch_one(f"SELECT 1 FROM chat_access WHERE {_IS_ACCOUNT} AND chat_id = $3", *old_chat[:2], new_chat_id):
        allow = f"UPDATE chat_access SET chat_id = $4 WHERE {_IS_ACCOUNT} AND chat_id = $3"
        moved = tx.execute(allow, *old_chat, new_chat_id)
    else:
        moved = tx.execute(f"DELETE FROM chat_access WHERE {_IS_ACCOUNT} AND chat_id = $3", *old_chat)
    move_messages = f"UPDATE group_message SET chat_id = $4, message_id = NULL WHERE {_IS_ACCOUNT} AND chat_id = $3"
    moved += tx.execute(move_messages, *old_chat, new_chat_id)
    if keeps_message_ids:
        moved += tx.execute(
            f"UPDATE inbound_message SET chat = $4 WHERE {_IS_ACCOUNT} AND chat = $3 AND NOT EXISTS ("
            "SELECT 1 FROM inbound_message n WHERE n.platform = $1 AND n.account = $2 AND n.chat = $4"
            " AND n.sender = inbound_message.sender AND n.message_id = inbound_message.message_id)",
            *old_chat,
            new_chat_id,
        )
    return moved


def _move_home_channel(tx: Transaction, platform: str, account: str, old_chat_id: str, new_chat_id: str) -> int:
    moved = 0
    for (source,) in tx.fetch_all(f"SELECT source FROM home_channel WHERE platform = $1 {tx.for_update}", platform):
        home = decode_source(source)
        if (home.account, home.chat_id) == (account, old_chat_id):
            new_source = _move_source(source, new_chat_id)
            moved += tx.execute("UPDATE home_channel SET source = $2 WHERE platform = $1", platform, new_source)
    return moved


def _move_jobs(tx: Transaction, old_key: str, old_chat: tuple[str, str, str], new_chat_id: str) -> int:
    """Let the jobs that were made in a chat, or send to it, go on under its new id.

    They belong to people who have written there, or to owners, who may send everywhere.
    """
    moved = 0
    sql = f"""SELECT no, origin, targets, proposed_change FROM job WHERE person_id IN (SELECT m.person_id FROM lane l
        JOIN audience_member m ON m.audience_no = l.audience_no WHERE {_IS_KEY}
        UNION SELECT id FROM person WHERE role = 'owner') ORDER BY no {tx.for_update}"""
    for no, origin, targets, change in tx.fetch_all(sql, old_key):
        source, fields = decode_source(origin), json.loads(change) if change else {}
        if (source.platform, source.account, source.chat_id) == old_chat:
            source = replace(source, chat_id=new_chat_id)
        if "targets" in fields:
            fields["targets"] = [_move_target(target, old_chat, new_chat_id) for target in fields["targets"]]
        columns = (
            encode_source(source),
            encode_json([_move_target(target, old_chat, new_chat_id) for target in json.loads(targets)]),
            encode_json(fields) if change else None,
        )
        if columns != (origin, targets, change):
            moved += tx.execute(
                "UPDATE job SET origin = $2, targets = $3, proposed_change = $4 WHERE no = $1", no, *columns
            )
    return moved


def _move_target(text: str, old_chat: tuple[str, str, str], new_chat_id: str) -> str:
    try:
        target = parse_target(text)
    except InvalidInput:  # the grammar has changed since the job was made
        return text
    if target.kind != "chat" or (target.platform, target.account, target.chat_id) != old_chat:
        return text
    return format_chat_target(target.platform, new_chat_id, target.thread_id, target.account)
