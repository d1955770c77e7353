"""Process messages: use each reading, or reject it and count the reason."""
