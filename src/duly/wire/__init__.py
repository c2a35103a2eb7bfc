"""JSON as front doors speak it: the only place that names its fields."""
