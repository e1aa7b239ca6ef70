"""What a generated trace is made of, an idea a module: its file, rates, gaps, lengths, prefixes, requests.

`replay.traces.generate` puts them together.
"""
