"""Ratios of our layers against plain implementations of the released algorithms, and against the plain model."""
