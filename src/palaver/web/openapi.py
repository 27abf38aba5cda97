"""The OpenAPI document: corrections that apply to all routes.

The schemas and texts of a route are defined with the route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi

if TYPE_CHECKING:
    from fastapi import FastAPI


def install_openapi(app: FastAPI) -> None:
    """Generate the document once, on the first request for it."""

    def get_document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _correct_schema(
                get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
            )
        return app.openapi_schema

    app.openapi = get_document  # type: ignore[method-assign]


def _correct_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Correct what FastAPI assumes: validation errors have our shape, and either way to sign in is enough."""
    schemas = schema["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for operations in schema["paths"].values():
        for operation in operations.values():
            if "requestBody" in operation:
                operation["responses"]["413"] = operation["responses"]["400"] | {"description": "Content Too Large"}
            if operation.get("security"):  # alternatives, not requirements that all have to be met
                operation["security"] = [{name: []} for scheme in operation["security"] for name in scheme]
    return schema
