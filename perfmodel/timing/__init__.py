"""From counts to seconds: the time that a kernel needs of each resource, joined into one time.

    t = start + soft maximum over resources of (demand / rate)

Start at `LibraryOperator.time` (perfmodel/operators/library.py): it chooses the implementation
class, makes candidate plans and times them. Then, in the order of a prediction:

    setting                  what every plan is made for: device, constants, how the run is timed
    machine, architectures   a device in SI units, and the facts of its chip family
    libraries                what a library's kernels do: tiles, slices, fusions; names to kernels
    style, shares            such facts as numbers: shares of units, prices of blocks
    attention*, splitkv, matmul, menu, rowwise, unfused    plans: schedules with a Style
    kernel                   one kernel: the terms, and how they join
    pipes, memory, traffic, occupancy, power    one resource a module
    plan, placing, floors    kernels of a plan, operands behind a link, launch floors
    runs, circumstances      how a run was timed (runs.yaml)
    spread, physical         the range of a prediction, and the bound below it
    constants                shares and prices with their sources (constants.yaml)
    ablation                 terms that can be switched off, to see what each is worth
"""
