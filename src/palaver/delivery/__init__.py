"""Delivery: the outbox that sends answers, reports about deliveries, and the health of platforms."""
