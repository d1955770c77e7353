"""Read tables, scenarios, runs and bags into data sets for learning."""
