"""Commands of the learning package."""
