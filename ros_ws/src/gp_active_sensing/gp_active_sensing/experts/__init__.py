"""Experts: costly sources of current field values at known places, asked before a decision."""
