"""Goods: kinds with a coherent schema each, and the products and texts that are drawn from them.

core        what a kind of goods is; which features no material has
kinds       all kinds: outdoor, kitchen, living, worn, garden, written in shorthand
dimensions  how people speak of quantities, and other units
features    what products have or lack          opinions    what only reviews tell
names       brands, lines, models, by split
draw        schema → products                   texts       titles, tables, prose, reviews
catalogues  a seed → a catalogue of goods
"""
