"""Traces: reading, importing, checking, transforming, describing, generating and writing them.

Nothing here knows an engine, a policy or a metric. The modules are imported one by one, so that naming this package
loads nothing.
"""
