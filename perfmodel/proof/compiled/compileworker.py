"""The process that compiles: jobs as JSON lines on standard input, answers on standard output.

    python -m perfmodel.proof.compiled.compileworker < jobs

It is a separate process for two reasons: Triton reads TRITON_INTERPRET only when it is first
imported, and a compiler crash must not end the caller. An answer holds the listing and the binary's
resources, or a one-line `error`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module, util
from pathlib import Path
from typing import Any

_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_RESERVED = 1024  # bytes that ptxas counts for the system from compute capability 9.0 on


def main() -> None:
    """Answer every job in turn; nothing but answers goes to standard output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = _build(job)
        except Exception as error:  # whatever the compiler raises is this job's answer
            answer = {"error": _reason(error)}
        print(json.dumps({"key": job["key"], **answer}), file=answers, flush=True)


def _reason(error: Exception) -> str:
    """The informative line of the compiler's message, from the error's first cause."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    words = ("error", "not supported", "must", "invalid", "unsupported")
    clues = [line for line in lines if any(word in line.lower() for word in words)]
    return f"{type(error).__name__}: {(clues or lines or ['no reason given'])[-1]}"


def _build(job: Mapping[str, Any]) -> dict[str, Any]:
    import triton
    from triton.backends.compiler import GPUTarget

    target = GPUTarget(job["backend"], job["arch"], job["warp_size"])
    function = _function(job["function"])
    source = _source_of(function)(
        fn=function,
        signature=job["signature"],
        constexprs=job["constexprs"],
        attrs={(int(i),): value for i, value in job["attributes"].items()},
    )
    options = {"num_warps": job["num_warps"], "num_stages": job["num_stages"]}
    binary = triton.compile(source, target=target, options=options)
    answer = {
        "warps": int(binary.metadata.num_warps),
        "dynamic_shared_bytes": int(binary.metadata.shared),
        "tensor_memory_columns": int(getattr(binary.metadata, "tmem_size", None) or 0),
    }
    listing = _sass(binary.asm["cubin"]) if job["backend"] == "cuda" else _gcn(binary.asm["amdgcn"])
    return answer | listing


def _source_of(function: Any) -> Any:
    """Triton's source object for a function: AST source, or Gluon's own, which skips the first
    passes."""
    import triton

    if not function.is_gluon():
        return triton.compiler.ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource

    return GluonASTSource


def _function(place: Mapping[str, str]) -> Any:
    """The kernel's function, imported by module and name, or from its file if that is in no
    package."""
    package = place["module"].split(".")[0]
    if package == "perfmodel_kernels":
        from perfmodel.proof import registry

        registry.kernels()
    if util.find_spec(package) is not None or package in sys.modules:
        module = import_module(place["module"])
    else:
        spec = util.spec_from_file_location(place["module"], place["file"])
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load {place['file']}")
        module = util.module_from_spec(spec)
        sys.modules[place["module"]] = module
        spec.loader.exec_module(module)
    return getattr(module, place["name"])


def _sass(cubin: bytes) -> dict[str, Any]:
    """Listing and resources of a cubin, from the cuobjdump that Triton ships."""
    with _cubin_file(cubin) as path:
        listing = _tool("-sass", path)
        match = _RESOURCES.search(_tool("-res-usage", path))
    if match is None:
        raise ValueError("cuobjdump does not say what the binary uses")
    registers, stack, shared, local = (int(number) for number in match.groups())
    system = _RESERVED if shared >= _RESERVED and not re.search(r"sm_8\d", listing) else 0
    code = re.sub(r"\s*/\* 0x[0-9a-f]+ \*/", "", listing)  # the encodings
    return {
        "listing": code,
        "registers": registers,
        "spill_bytes": max(stack, local),
        "static_shared_bytes": shared - system,
        "scalar_registers": 0,
    }


@contextmanager
def _cubin_file(content: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(content)
        yield str(path)


def _tool(option: str, path: str) -> str:
    from triton import knobs

    command = [knobs.nvidia.cuobjdump.path, option, path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _gcn(assembly: str) -> dict[str, Any]:
    """Listing and resources from AMDGCN assembly, whose metadata are at its end."""

    def number(name: str) -> int:
        return int(re.findall(rf"\.{name}:\s+(\d+)", assembly)[-1])

    end = assembly.find(".amdhsa_kernel")
    lines = (line for line in assembly[: end if end >= 0 else None].splitlines() if _is_code(line))
    return {
        "listing": "\n".join(lines),
        "registers": number("vgpr_count"),
        "scalar_registers": number("sgpr_count"),
        "spill_bytes": number("private_segment_fixed_size"),
        "static_shared_bytes": number("group_segment_fixed_size"),
    }


def _is_code(line: str) -> bool:
    """Whether a line is an instruction or a label that a branch may name."""
    text = line.lstrip()
    return not text.startswith((".loc", ".cfi", ";", ".file")) and bool(text)


if __name__ == "__main__":
    main()
