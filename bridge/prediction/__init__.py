"""Predictors of run times: from what is known when a job is submitted, and of how well they do."""
