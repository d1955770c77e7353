"""The commands of ``gp-active-sensing``; `cli` gathers them."""
