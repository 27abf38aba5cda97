"""Memory: what the agent remembers, one fact in each memory.

Owns the tables `memory`, `memory_block` and `memory_turn`. Always true: a memory belongs to one audience, and only its
members see it; an audience has no memory twice; a conversation is looked through for facts once, and what a person has
deleted is not learned from it again.
"""
