"""The OpenAPI document: names of operations, and which errors a route can answer.

What a route takes and gives is said where the route is. Here is said what holds for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.routing import APIRoute


def operation_id(route: APIRoute) -> str:
    """What a route is called: the name of its function."""
    return route.name


def install_openapi(app: FastAPI) -> None:
    """Let the document be made once, when somebody first asks for it."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _finished(
                get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
            )
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _finished(schema: dict[str, Any]) -> dict[str, Any]:
    """The document without what is not true here: validation errors have our shape, not FastAPI's."""
    schemas = schema["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for operations in schema["paths"].values():
        for operation in operations.values():
            if "requestBody" in operation:
                operation["responses"]["413"] = operation["responses"]["400"] | {"description": "Content Too Large"}
            if operation.get("security"):  # one of the two ways is enough
                operation["security"] = [{name: []} for each in operation["security"] for name in each]
    return schema
