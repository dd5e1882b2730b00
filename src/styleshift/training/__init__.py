"""Training and evaluating: what has to know about time (steps, epochs, checkpoints) on top of models and data."""
