"""An imitation of Metal that records what is asked of it and has it executed at once."""
