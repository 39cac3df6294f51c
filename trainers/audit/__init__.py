"""Audits: measures of evaluations, episode logs and runs, one file each with its paper, behind ``turnwise audit``.

A folder holds the audits of one subject (``evaluations/``, ``logs/``, ``training/``); :mod:`turnwise.trainers.audit.registry` finds
them there, so that a new file is a new audit and a new folder with its reader a new sub-command.
"""
