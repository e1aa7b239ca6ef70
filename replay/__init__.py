"""Replay a trace of LLM requests under every scheduling policy and batching mode, and compare them."""

__version__ = "0.1.0"
