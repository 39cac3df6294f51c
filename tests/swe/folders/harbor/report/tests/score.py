import json

try:
    with open("/app/report.json") as file:
        report = json.load(file)
except (OSError, ValueError):
    report = {}
print((report.get("errors") == 3) / 2 + (report.get("worst") == "/b") / 2)
