"""What a person runs: commands, each a process that lives for seconds."""
