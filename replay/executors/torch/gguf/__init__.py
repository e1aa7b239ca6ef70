"""GGUF files, wheels and packages turned into folders that transformers loads."""
