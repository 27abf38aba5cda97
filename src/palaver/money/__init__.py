"""Budgets: limits on what models cost, held before each call and settled after it."""
