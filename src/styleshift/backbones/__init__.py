"""Networks with weights: one file is one family, and says which of its points can take a layer."""
