"""Modules with shardings of GSPMD: what their texts say, and where, for the passes that bring them to SDY and back."""
