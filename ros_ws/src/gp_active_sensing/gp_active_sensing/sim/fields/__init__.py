"""Noise-free fields of scenarios: draws, tables, rasters, formulas, plumes."""
