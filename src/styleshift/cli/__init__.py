"""What someone at a terminal can do: one file is one command.

Modules here import nothing heavy at their top, so that `styleshift --help` answers at once; a command imports what it
needs when it is called.
"""
