"""GPU4xx: more than one GPU."""
