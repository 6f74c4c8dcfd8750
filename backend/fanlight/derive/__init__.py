"""Models made of models: a change that is for good gives a bundle of its own, with what it did to accuracy (docs/decisions/0013)."""
