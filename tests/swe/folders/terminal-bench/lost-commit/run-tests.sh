#!/bin/bash
python3 -m pytest -p no:cacheprovider -rA "$TEST_DIR/test_outputs.py"
