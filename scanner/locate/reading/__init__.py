"""What a file says, read from its syntax tree."""
