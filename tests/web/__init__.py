"""The web, over a real server."""
