"""Routes for all that is left of a mission: distances, order, shapes, and how to follow one."""
