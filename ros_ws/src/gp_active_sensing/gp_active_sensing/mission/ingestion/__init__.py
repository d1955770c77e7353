"""From a message to a reading that the belief has used, or a counted reason why not."""
