"""`opscan fix`: the corrections of source rules, made in the user's files."""
