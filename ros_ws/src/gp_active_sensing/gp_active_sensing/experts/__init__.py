"""Experts: costly sources of present values at known places, for use before a decision."""
