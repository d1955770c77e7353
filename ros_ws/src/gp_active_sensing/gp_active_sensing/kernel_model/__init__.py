"""Belief over kernels, and its file; gp_active_sensing_learning learns the belief."""
