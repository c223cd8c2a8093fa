"""What profilers write, as launches with metrics in SI units: a format a module."""
