#!/bin/sh
# The hook before an edit, for clients that are configured with a path of a script: the event comes on standard input.
exec "$(dirname "$0")/../bin/interlock-hook" pre-edit
