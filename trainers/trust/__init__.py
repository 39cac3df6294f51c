"""Trust in a judge: labelled episodes to ask it about, bounds of how often it errs, and a test whether it still does not.

Environments know how their episodes ended, so every judge can be asked about episodes whose truth is known, before it is paid
(:mod:`turnwise.trainers.trust.requirement`) and while it is (:mod:`turnwise.trainers.trust.drift`).
"""
