"""The learner: episodes become tensors, an objective is minimised, and the engine gets the weights."""
