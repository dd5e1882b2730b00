"""Data with domains: where the images are, what they show, and which of them a protocol trains and tests on.

Files, classes and domains are all that is known here; nothing below this folder has heard of a model.
"""
