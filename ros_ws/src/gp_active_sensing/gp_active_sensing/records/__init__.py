"""What a run leaves: its directory, journal of events, scores and summary."""
