#!/bin/bash
score=$(python3 /tests/score.py)
echo "$score" > /logs/verifier/reward.txt
