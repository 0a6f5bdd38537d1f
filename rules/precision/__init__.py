"""GPU5xx: precision and kernels."""
