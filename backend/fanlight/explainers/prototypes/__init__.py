"""Methods whose result is that parts of the picture look like parts of training pictures."""
