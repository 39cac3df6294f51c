#!/bin/bash
cd /app
(echo shop,amount; awk -F, 'NR > 1 {sum[$1] += $2} END {for (shop in sum) print shop "," sum[shop]}' sales.csv | sort) > totals.csv
