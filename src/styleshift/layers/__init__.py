"""One file, one layer: a formula of `styleshift.style` plus what it remembers. A layer's name is its file's name."""
