"""What a trace is like: its size and shares, what a cache would find in it, and how many tokens it holds over time.

Nothing here changes a trace. The modules are imported one by one, so that naming this package loads nothing.
"""
