"""Shardings of GSPMD, the partitioner of XLA before Shardy: texts such as `{devices=[2,4]<=[8]}`.

tile_assignment.py   which device has which tile
hlo_sharding.py      a sharding, whatever its kind
syntax.py            its text, both ways
meshes.py            the same as sharding of SDY, whose axes have to be found; and back
"""
