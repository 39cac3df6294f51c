#!/bin/bash
cd /app
errors=$(awk '$2 >= 500' server.log | wc -l)
worst=$(awk '$2 >= 500 {print $3}' server.log | sort | uniq -c | sort -rn | awk 'NR == 1 {print $2}')
echo "{\"errors\": $errors, \"worst\": \"$worst\"}" > report.json
