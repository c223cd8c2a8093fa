"""A training step: optimisers, memory, pipelines, overlap."""
