"""From a message to a reading that the belief uses, or to a counted reason for its rejection."""
