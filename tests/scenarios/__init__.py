"""Tests that kill processes, and the harnesses that start these processes and check what they leave behind."""

import pytest

pytest.register_assert_rewrite("scenarios.gateway_harness", "scenarios.store_harness")
