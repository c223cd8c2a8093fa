"""Hardware specs as data: one YAML file a device, read by `perfmodel.hardware`."""
