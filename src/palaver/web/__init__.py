"""The web: the HTTP API with its live stream, signing in, webhooks, the OpenAI-compatible API, and the page.

It owns requests and responses, and no data: routes call the services of `WebState` and return the JSON that the rooms
declare (`wire.py`). Always true: the guard checks every request before a route does; a request is authenticated before
its body is read; what a caller may not see gives the same response as what does not exist; every error has one shape.
"""
