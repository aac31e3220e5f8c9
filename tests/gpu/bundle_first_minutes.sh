#!/bin/sh
# ./first_minutes.sh in the folder of the bundle: all that a quarter of an hour on a GPU should show, in one command (first_minutes.py has the options).
cd "$(dirname "$0")" && . ./env.sh && exec python3 -B first_minutes.py "$@"
