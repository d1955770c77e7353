"""Experts: costly sources of current values at known places, asked before a decision."""
