"""The page of a kernel model."""
