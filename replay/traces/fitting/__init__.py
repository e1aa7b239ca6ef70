"""A specification that resembles a trace: what a trace is like, an idea a module, and how far the two are apart.

`fitted` has it all: the file to share, and the distances.
"""
