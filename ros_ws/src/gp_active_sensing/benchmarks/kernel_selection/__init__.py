"""What VBKS is compared with: one kernel of a model, exact Gaussian processes, GPyTorch's SVGP."""
