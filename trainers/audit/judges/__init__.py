"""Audits of a judge: its verdicts on episodes whose truth is known."""
