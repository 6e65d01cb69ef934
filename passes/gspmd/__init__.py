"""Import and export of GSPMD shardings: `mhlo.sharding`, frontend attributes and custom calls."""
