"""Function calling: drawn interfaces and requests, parallel calls, nothing that fits, what must be asked for."""
