import sys

steps, items = int(sys.argv[1]), sys.argv[2:]
print(*items[steps:], *items[:steps])
