"""What a machine can do, what an engine uses of it, and how busy its device is."""
