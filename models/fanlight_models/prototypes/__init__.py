"""Prototypes: ProtoViT (Ma, Donnelly, Liu, Vosoughi, Rudin & Chen, NeurIPS 2024, arXiv 2410.20722) in plain torch."""
