"""Rules about source code: parsed with `ast`, never run, torch never imported."""
