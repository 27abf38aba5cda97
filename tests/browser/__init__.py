"""Tests that use the page in a real browser, against a real server."""
