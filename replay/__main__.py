"""`python -m replay` is the command `replay`."""

from replay.cli import main

main()
