"""Small fast worlds for experiments: arithmetic with a calculator, deduction, sorting by comparisons."""
