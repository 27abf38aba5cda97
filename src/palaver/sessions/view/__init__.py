"""What one principal may see and change: the only way to answer a person.

`SessionView` has the verbs on sessions; its parts (`transcripts`, `projects`, …) have the rest. All of them find
sessions through one `ViewScope`, inside the query itself. A session that is not the principal's and a session that does
not exist give the same answer, `SessionNotFound`. What the principal sees but may not do gives `NotAllowed`.
"""

from palaver.sessions.view.scope import TrustedScope as TrustedScope, ViewScope as ViewScope
from palaver.sessions.view.session_view import (
    AsyncSessionView as AsyncSessionView,
    SessionView as SessionView,
    SessionViewInTransaction as SessionViewInTransaction,
)
