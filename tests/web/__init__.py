"""Tests of the web, with a real server."""
