"""Parts of `SensingLoop`: observations, reserved budget, plans of a batch."""
