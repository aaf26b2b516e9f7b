"""What a number means: grids, bags, noise, metrics, selection rules, and the fit of one cell."""
