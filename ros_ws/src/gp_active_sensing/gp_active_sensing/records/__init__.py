"""Records of a run: its directory, journal of events, metrics and summary."""
