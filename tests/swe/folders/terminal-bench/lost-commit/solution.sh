#!/bin/bash
cd /app/notes && git merge -q "HEAD@{1}"
