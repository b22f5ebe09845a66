"""The sparse model: what the zeros of tensors save."""
