"""Names the fault for which an engine's log-probabilities differ from the trainer's: ``turnwise mismatch LOG --model M``.

A log (:mod:`turnwise.trainers.mismatch.reading`) is scored once with the model (:mod:`turnwise.trainers.mismatch.scoring`). Each file of
``faults/`` proposes explanations of what was logged, and :mod:`turnwise.trainers.mismatch.deciding` weighs them.
"""
