"""Deletes a conversation, a job or a project in a process of its own, and is killed at a crash point.

Arguments: the URL of the database, what to delete (`session`, `job` or `project`) and its id, the crash point, and at
which passing of it.
"""

from __future__ import annotations

import sys

from palaver import GatewayConfig, SessionStore
from palaver.agent.base import ModelPrices
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.operation import BlockingRunner
from palaver.jobs.fields import JobEnvironment
from palaver.jobs.service import Jobs
from palaver.testing import ScriptedAgent
from support.crashing import kill_at


def delete(store: SessionStore, what: str, deleted_id: str) -> None:
    owner = store.get_owner().principal
    if what == "session":
        store.delete_session(deleted_id)
    elif what == "project":
        store.seen_by(owner).projects.delete_completely(deleted_id)
    else:
        agent = ScriptedAgent()
        environment = JobEnvironment(
            config=GatewayConfig(),
            rules=TurnRules(),
            agent=agent,
            profile=AgentProfile(),
            prices=ModelPrices(agent),
        )
        Jobs(BlockingRunner(store.engine), environment, store.clock).remove_completely(owner, deleted_id)


def main(url: str, what: str, deleted_id: str, point: str, passing: str) -> None:
    kill_at(point, int(passing))
    with SessionStore.open(url) as store:
        delete(store, what, deleted_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
