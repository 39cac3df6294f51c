"""Predicting what a person does next in the shop (Shop-R1's task): personas, their sessions, the reward.

What solves it is the person's own habit (sessions), so there is no solver; render and vocabulary are the shop's.

env        ShopHumanEnv                              tasks      a shop task, a person, the session of the two
knobs      what a suite may set beside the shop's    state      where a watched session stands
actions    predictions: tools, read, written         reward     Shop-R1's hierarchical reward of one prediction
personas   who shops, and how; sampled traits        sessions   what such a person does from page to page
"""
