"""What every policy must keep to under every mode, as code: replays in memory, drawn traces, and what is checked."""
