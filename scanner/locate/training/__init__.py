"""What a file says about training its model: loss, optimizer, clipping."""
