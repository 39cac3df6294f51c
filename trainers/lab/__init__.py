"""The laboratory: processes with exact gradients, true advantages by forks, and every credit rule measured there."""
