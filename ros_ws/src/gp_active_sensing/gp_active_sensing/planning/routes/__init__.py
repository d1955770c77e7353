"""Routes for the rest of a mission: distances, orders of visits, shapes, and following."""
