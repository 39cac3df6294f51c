"""Asking for goods as people do: kinds of asking, each with the conditions by which a purchase is judged.

core       what a kind of asking is; what it knows of the shop
money      prices, ratings, brands, delivery, service
measures   quantities, other units, comparisons with another product
matter     materials, features, uses, reviews, variants
requests   several kinds put together as one request that few products fulfil
"""
