"""Compiled from collectives/spread.yaml by `python -m perfmodel.compiled`."""

HASH = "acb0933ecb83f9c6"
DOCUMENT = {
 'version': 1,
 'devices': ['a100-sxm4-80gb', 'h100-sxm'],
 'libraries': ['nccl', 'sglang', 'vllm'],
 'fitted': {},
 'unseen': {},
}
