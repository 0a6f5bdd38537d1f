"""GPU3xx: autograd and memory."""
