"""The live view of a run: figures from looks at it, lines that show them, and the terminal that the lines go to."""
