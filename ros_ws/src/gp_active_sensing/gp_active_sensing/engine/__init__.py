"""Parts of `SensingLoop`: reserved budget, plans of a batch."""
