"""The experiment file: what is to be replayed, on what, and how; and the grid of cells that it declares."""
