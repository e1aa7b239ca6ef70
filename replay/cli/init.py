"""`replay init`: a commented experiment file that runs as it is."""

from __future__ import annotations

import click

TEMPLATE = """\
# An experiment: which traces are replayed, on which engine, in which modes, under which policies.
# Only `traces` is required. Run it with:  replay run FILE   Every key there is, with what it takes:  replay keys

traces  = ["traces/sample.parquet"]
# loads = [0.5, 1, 2, 4]   # each trace at so many times its mean rate: from which on do policies part?
# without_users = ["ana"]  # each trace a second time without these users: what do they cost the others?
repeats = 1              # more of them show how much a figure varies from run to run
# noise_floor = true     # fifo once more in every mode: what two runs of one cell differ by is noise
seed    = 0
# open_loop = true         # every turn of a session comes at its arrival; else it waits for the answer before it

# What is done to the trace first, in this order.
transforms = [
  # { window = ["20m", "35m"] },
  # { speed = 2.0 },
  # { rate = "2x" },       # twice its mean rate; { rate = 5.0 }: five requests a second
  # { scale_tokens = 0.25 },
  # { limit = 100 },
]

[engine]
kind        = "torch"    # or "simulated": a cost model on a virtual clock
model       = "tiny"     # a named shape with dummy weights, a folder, or a hub name
threads     = 1          # left out: as many as torch likes
block_size  = 16         # tokens in one KV block
kv_blocks   = 1024       # or memory_utilization = 0.9: as many as fit into this share of the device's memory
max_waiting = 1024       # more are rejected
# cost = { fixed_ms = 15.0, prefill_ms = 0.25, decode_ms = 0.2, context_ms = 0.0012 }
#                        # a simulated step: so long, and so much for each token of each kind; a real run prints its own
# device          = "cuda"   # left out: a CUDA device if there is one, else the CPU
# linears         = "fp16"   # weights in 16 bits on a CPU: faster at small batches; tokens may differ; or a list
# prefix_cache    = true     # prompts that begin alike share the KV blocks of their beginning, in continuous mode
# swap_gb         = 1.0      # GiB of host memory for what evicted requests had computed; without, it is computed again
# temperature     = 0.7      # left out: the likeliest token; top_k and top_p narrow what is drawn from
# stop            = "eos"    # an answer may end before the trace's length, where a model of real weights ends it
# price_per_hour  = 2.5      # of the machine: then the report says what a million tokens cost
# queue_timeout_s = 30       # from when a request was due to its admission
# timeout_s       = 120      # from when it was due to its end

# Left out: all three with their defaults. A list is swept: one cell for each value.
[modes]
static     = { batch_size = 8 }
dynamic    = { max_batch_size = 8, max_wait_ms = 50 }
continuous = { max_running = 8, token_budget = 2048 }     # or max_running = [1, 8, 32, "adaptive"]

# Left out: these five. policies = "all" (above the first table) takes every registered one.
[policies]
fifo     = {}
sjf      = { ageing = 0.0 }
priority = {}
fair     = {}
hybrid   = { band_s = 30.0 }

[lengths]
predictor = "oracle"     # what policies may know of output lengths; max_tokens, user_mean and history know no truth,
                         # noisy, uniform, bucket and ranker a part of it

[goals]                  # a request is good when it meets all of them
ttft_ms = 500
tpot_ms = 50
# reading_tokens_per_s = 10  # no goal of its own: then the report says how good the experience of a reader was

# [service]              # what users received: so much for a token of a prompt, and of an answer
# prompt   = 1.0
# output   = 2.0
# window_s = 60          # left out: that, or a tenth of the trace's time where it is less
"""


@click.command("init")
@click.argument("file", required=False, type=click.Path(dir_okay=False))
def init(file: str | None) -> None:
    """Print a commented experiment file, or write it to FILE (which must not exist).

    \b
    Examples:
      replay init > experiment.toml
      replay init experiment.toml
    """
    from pathlib import Path

    from replay.errors import OutputError

    if file is None:
        click.echo(TEMPLATE, nl=False)
        return
    try:
        with Path(file).open("x", encoding="utf-8") as target:
            target.write(TEMPLATE)
    except FileExistsError:
        raise OutputError(f"{file}: exists already, and is left as it is") from None
    except OSError as fault:
        raise OutputError(f"{file}: cannot be written ({fault.strerror})") from fault
