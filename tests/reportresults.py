"""One result of every kind, made by the commands themselves, for the tests of the report."""

import contextlib
import csv
import io
import json
from pathlib import Path

from perfmodel.cli import run

HERE = Path(__file__).parent
EVIL = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"

COMMANDS = {
    "networks": "network gpt2 -d a100 --seq 256 --pass train",
    "steps": "train gpt2 -d v100-sxm2 --dtype fp16 --seq 512 --micro-batch 4,64 "
    "--recompute none,full",
    "loads": "infer llama-3-8b -d h100-sxm --batch 1,8,64 --engine vllm --terms",
    "fits": "infer llama-3-8b -d rtx4090 --fit context --batch 1,8",
    "collectives": "collective all-reduce --system dgx-h100 --bytes 1k:1M:x32 --ranks 8,64",
    "ridges": "collective wall --system dgx-h100 --hidden 8k",
    "kernels": f"profile {HERE / 'traces' / 'llama-compiled.json.gz'} -d epyc-9654",
    "formats": "compress llama-2-7b -d a6000 --formats fp16,w4a16 --batch 1",
    "policies": "offload opt-6.7b -d t4 --host xeon-gold-6242 --policy 20,80,0,100,0,100 "
    "--batch 8 --blocks 2 --isl 128 --osl 8",
    "recompute": "offload opt-6.7b -d a100-pcie-40gb --policy recompute --context 1k --batch 8,32",
    "streaming": "offload llama-2-13b -d rtx4090 --policy stream --batch 1,64",
    "layers": "offload llama-2-7b -d rtx4070 --host xeon-8480plus --policy layers",
    "machines": "hold llama-2-70b -d wse-2 -d h100-sxm",
    "placements": "embedding --model dlrm-dcnv2 -d h100-sxm --shards 2 --batch 64k",
}
"""Commands by the member that has their rows."""

RUNS = {
    "training": (
        "source,device,devices,network,stack,dtype,pass,seq,global_batch,micro_batch,metric,value",
        *(
            f"{source},a100,1,gpt2,eager,bf16,train,1024,{n},{n},{metric}"
            for source, n, metric in (
                ("one", 4, "step_ms,170"),
                ("one", 8, "step_ms,300"),
                ("two", 4, "tokens_per_s_per_device,24000"),
            )
        ),
    ),
    "serving": (
        "source,device,devices,engine,network,load,batch,isl,osl,metric,value",
        *(
            f"one,{device},1,vllm,llama-3-8b,static batch,{batch},512,64,{metric}"
            for device in ("h100-sxm", "a100-sxm4-80gb")
            for batch, metric in ((1, "ttft_ms,30"), (1, "tpot_ms,8"), (8, "tpot_ms,9"))
        ),
    ),
    "collective": (
        "source,device,system,library,collective,dtype,ranks,bytes,latency_us",
        *(
            f"one,h100-sxm,dgx-h100,nccl,{name},bf16,8,{size},{time}"
            for name, size, time in (
                ("all-reduce", 1024, 16),
                ("all-reduce", 1024, 17),
                ("all-gather", 65536, 20),
            )
        ),
    ),
}
"""Tables of measured runs by kind."""


def _printed(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(list(map(str, arguments))) == 0, arguments
    return out.getvalue()


def write(folder, more=()):
    """Write `NAME.json` and `NAME.csv` of each command, of `more` too, and `rows-KIND.csv` of each
    compared table."""
    for name, command in {**COMMANDS, **dict(more)}.items():
        for format in ("json", "csv"):
            text = _printed(*command.split(), "-f", format)
            (folder / f"{name}.{format}").write_text(text, encoding="utf-8")
    for kind, lines in RUNS.items():
        table = folder / f"{kind}.csv"
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        _printed("compare", table, "--kind", kind, "--output", folder / f"rows-{kind}.csv")
    return folder


def document(folder, name):
    """What a command printed as JSON."""
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def rows(path):
    """The rows of a CSV."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def evil(value):
    """A document in which every text begins with markup that would run a script."""
    if isinstance(value, dict):
        return {key: evil(item) for key, item in value.items()}
    if isinstance(value, list):
        return [evil(item) for item in value]
    return f"{EVIL}{value}" if isinstance(value, str) else value
