"""Services: what Palaver does with conversations. Each class does one job and gets the objects it needs."""
