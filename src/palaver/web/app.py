"""The web application: all routes, the guard around them, and the page.

`create_app` connects the parts and starts nothing; the code that runs the server starts and stops the gateway.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI

from palaver import __version__
from palaver.web import openai
from palaver.web.api_route import RouteGroup
from palaver.web.errors import install_errors
from palaver.web.guard import install_guard
from palaver.web.http_protocol import ConnectionLimits
from palaver.web.metrics import install_metrics
from palaver.web.open_requests import OpenRequests, RequestLimits
from palaver.web.page import install_openapi, install_page
from palaver.web.routes import (
    attachments,
    budgets,
    commands,
    deliveries,
    hooks,
    imports,
    jobs,
    live,
    me,
    memories,
    messages,
    models,
    operation,
    people,
    platforms,
    policies,
    projects,
    retention,
    saved_prompts,
    search,
    sessions,
    settings,
    shares,
    sign_in,
    speech,
    temporary,
    usage,
)

if TYPE_CHECKING:
    from palaver.web.state import WebState

PAGE_FOLDER: Final = Path(__file__).parent / "static"

_MODULES_WITH_ROUTES = (
    *(sign_in, me, people),
    *(sessions, messages, deliveries, temporary, search, projects, saved_prompts, memories, jobs),
    *(models, policies, retention, settings, commands, usage, budgets),
    *(live, imports, attachments, speech, shares, platforms, hooks, operation, openai),
)


def create_app(state: WebState, page_folder: Path = PAGE_FOLDER) -> FastAPI:
    """Build the application. Without a built page in `page_folder`, it serves the API alone."""
    app = FastAPI(
        title="Palaver",
        version=__version__,
        summary="Conversations between people and one AI agent.",
        openapi_url=None,  # `install_openapi` serves it; the docs pages load scripts from other sites
        redirect_slashes=False,
    )
    app.state.palaver = state
    app.state.open_requests = OpenRequests(RequestLimits.from_connections(ConnectionLimits.from_open_files().total))
    install_errors(app)
    for module in _MODULES_WITH_ROUTES:
        app.routes.append(RouteGroup(module.router))
    install_openapi(app, state.base_path)
    install_page(app, page_folder)
    install_metrics(app, state)
    install_guard(app, state)
    return app
