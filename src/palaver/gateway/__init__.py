"""Chat platforms: the interface of an adapter, and what keeps each account connected."""
