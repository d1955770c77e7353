"""Routes for the rest of a mission: distances, orders of visits, rows, and route following."""
