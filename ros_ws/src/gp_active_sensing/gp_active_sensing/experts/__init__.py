"""Experts: costly sources of present values at known places, which are asked before a decision."""
