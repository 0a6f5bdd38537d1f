"""GPU2xx: feeding the device."""
