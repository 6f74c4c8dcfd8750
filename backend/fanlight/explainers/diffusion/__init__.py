"""Methods for models that draw from words."""
