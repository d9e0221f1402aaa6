"""From a published wheel to a snapshot that opens in a second."""
