"""Read tables, scenarios, runs and bags into one data set to learn from."""
