"""The paper's formulas as pure functions of tensors."""
