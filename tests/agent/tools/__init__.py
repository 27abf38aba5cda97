"""Tests of the tools that Palaver gives the agent."""
