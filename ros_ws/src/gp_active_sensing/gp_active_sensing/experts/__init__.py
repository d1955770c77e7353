"""Experts: costly sources of present values at known places, asked before a decision."""
