"""What operations say besides their operands: enumerations, dimension numbers, windows, groups."""
