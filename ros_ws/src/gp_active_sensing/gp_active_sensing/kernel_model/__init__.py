"""A belief over kernels and its file; what it is learned with is in `learning`."""
