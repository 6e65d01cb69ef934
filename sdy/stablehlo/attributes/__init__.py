"""The attributes of StableHLO: enumerations, dimension numbers, windows, replica groups."""
