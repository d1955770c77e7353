"""Parts of `SensingLoop`: budgets, limits, further quantities and reservations."""
