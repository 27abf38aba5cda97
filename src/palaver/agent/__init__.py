"""The port to an agent: its requests and events, its tools and toolsets, profiles, and the view of a conversation.

Always true: building the messages for a model is pure and deterministic, so that providers can cache a prompt. A
conversation can turn off toolsets and choose among what the operator allows, but never add to it.
"""
