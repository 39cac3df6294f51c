"""Predicting what a person does next in the shop (Shop-R1's task): personas, their sessions, the reward.

personas  who shops, and how; sampled traits
sessions  what such a person does from page to page
reward    Shop-R1's hierarchical, difficulty-scaled reward of one prediction
env       turnwise/ShopHuman-v0
"""
