"""Small fast worlds for experiments: arithmetic with a calculator, deduction, sorting by comparisons; and published problems of mathematics.

Each world is one idea of about 200 lines, so one module holds its tools, knobs, tasks, state, vocabulary, render
functions, environment and solver; there are no modules for each of them.

env        CallEnv: one call per turn            calc      turnwise/Calc-v0
actions    a call out of a message               deduce    turnwise/Deduce-v0
graphs     what Deduce's questions are about     sort      turnwise/Sort-v0
math_answers   answers of MATH, compared         maths     turnwise/Math-v0: GSM8K, MATH, AIME
"""
