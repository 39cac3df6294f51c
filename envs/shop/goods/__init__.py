"""Goods: kinds with a coherent schema each, and the products and texts that are drawn from them.

core        what a kind of goods is, and the shapes of the tables
tables      the tables, in YAML: outdoor, kitchen, living, worn, garden (kinds of goods); features, opinions,
            dimensions (how people speak of quantities), impossible (what no material has), names, reviews
units       values with their units             draw        schema → products
texts       titles, tables, prose, reviews      catalogues  a seed → a catalogue of goods
"""
