"""Shardings of GSPMD, XLA's partitioner before Shardy: texts such as `{devices=[2,4]<=[8]}`.

tile_assignment.py   assignment of tiles to devices
hlo_sharding.py      a sharding of any kind
syntax.py            parser and printer
meshes.py            conversion to SDY shardings, which recovers meshes with named axes, and back
"""
