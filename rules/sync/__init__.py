"""GPU1xx: the host waits for the device."""
