"""The drivers of agents and speech: models of providers, a local model, the demo, MCP servers, speech engines.

Always true: the packages of a provider are imported with the first turn and not before. No text for people and no log
has a key. An answer that has yielded something is never requested again.
"""
