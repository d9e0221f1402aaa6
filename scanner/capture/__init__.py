"""One step of a model, seen as ATen calls, without a device."""
