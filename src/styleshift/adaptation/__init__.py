"""Ways to behave at test time: one file is one method, its dataclass's fields are its settings.

`named.build(adaptation, "tent").wrap(model)` is called like the model, learns or remembers as its method does, and
forgets it all at `reset()`. The methods see images alone; `wrapping.Sees` says what else.
"""
