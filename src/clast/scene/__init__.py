"""What a user describes; every input is checked here, once."""
