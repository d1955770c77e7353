"""Process messages: use each reading, or count it by the reason of its rejection."""
