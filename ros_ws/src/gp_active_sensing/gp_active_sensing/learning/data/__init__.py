"""Rows to learn from: tables, scenarios, runs and bags, read into one data set."""
