"""Ways to learn from a batch: one file is one method, its dataclass's fields are its settings."""
