"""Money: what calls to models may cost and have cost.

Owns the tables `budget_limit`, `budget_window` and `model_call`. Always true: what a call can cost at most is held in
its windows (the day and the month of everybody, the person, the job and the profile) before the model is called, and
settled once, in the transaction that ends its row; a call whose end is unknown counts with all that was held. People
see the amounts of their own budgets only; owners see everything.
"""
