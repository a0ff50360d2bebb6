"""The process around llama.cpp's server. It is run by path, knows no other module of ours, and ends with its input.

It takes its settings as one argument of JSON, and prints JSON when it listens. What llama.cpp prints goes to standard
error.
"""

import json
import os
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Serve until the parent process closes our input or dies."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    with os.fdopen(os.dup(1), "w") as output:
        os.dup2(2, 1)
        llama = import_module("xllamacpp")
        params = llama.CommonParams()
        params.model.path = settings["file"]
        params.model_alias = {settings["model"]}
        params.n_ctx = settings["context"] * settings["parallel"]
        params.n_parallel = settings["parallel"]
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
        # Neither a page in a browser nor the prompts of others are for whoever finds the port.
        params.ui = params.endpoint_slots = False
        params.cache_ram_mib = settings["cache_mib"]
        try:
            server = llama.Server(params)
        except RuntimeError as error:
            sys.exit(str(error))
        json.dump({"url": server.listening_address}, output)
    sys.stdin.buffer.read()
    # The library has threads of its own that need not be waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
