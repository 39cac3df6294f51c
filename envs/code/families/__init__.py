"""Families of programming exercises: templates whose parameters make each one endless enough."""
