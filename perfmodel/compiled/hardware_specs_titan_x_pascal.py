"""Compiled from hardware_specs/titan-x-pascal.yaml by `python -m perfmodel.compiled`."""

HASH = "ef3a3b08bce0d216"
DOCUMENT = {
 'schema_version': 1,
 'slug': 'titan-x-pascal',
 'name': 'NVIDIA Titan X 12GB (Pascal)',
 'aliases': ['titanx-pascal', 'nvidia-titan-x-pascal', 'titan-x-p'],
 'vendor': 'NVIDIA',
 'kind': 'gpu',
 'architecture': 'Pascal GP102',
 'launch_year': {'value': 2016, 'source': ['gamersnexus-titanx'], 'status': 'secondary'},
 'compute_capability': '6.1',
 'compute': {
  'units': {'value': 28, 'source': ['gamersnexus-titanx'], 'status': 'secondary'},
  'unit_name': 'SM',
  'warp_size': {'value': 32, 'source': ['cccl-traits'], 'status': 'spec'},
  'clocks': {
   'base': {'value': '1417 MHz', 'source': ['gamersnexus-titanx'], 'status': 'secondary'},
   'boost': {
    'value': '1531 MHz',
    'source': ['gamersnexus-titanx'],
    'status': 'secondary',
    'note': 'the table prints 1530',
   },
   'reached': {
    'value': '1720 MHz',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'GPU Boost beyond the rated clock, as reviews of the reference card average it',
   },
  },
  'vector': {
   'fp64': {
    'value': '0.3429 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp32': {
    'value': '10.97 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'units x FLOP/clk/unit x boost',
   },
   'fp16': {
    'value': '0.1715 TFLOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': '1/64 rate: unusable',
   },
   'int8': {
    'value': '43.9 TOP/s',
    'source': ['formula'],
    'status': 'derived',
    'note': 'DP4A on the vector unit, no matrix unit',
   },
  },
  'vector_flop_per_clock_per_unit': {
   'values': {'fp64': 8, 'fp32': 256, 'fp16': 4, 'int8': 1024},
   'source': ['formula'],
   'status': 'derived',
   'note': 'FLOP per clock per SM, a multiply-add counts two',
  },
  'special_function': {
   'per_clock_per_unit': {'value': '32 /clk', 'source': ['cuda-guide-via'], 'status': 'via'},
  },
 },
 'memory': {
  'hbm': {
   'technology': 'GDDR5X',
   'capacity': {'value': '12 GB', 'source': ['toms-nvidia-history'], 'status': 'secondary'},
   'bandwidth': {
    'value': '480 GB/s',
    'source': ['toms-nvidia-history'],
    'status': 'secondary',
    'note': '384 bit x 10 Gb/s',
   },
  },
  'l2': {
   'capacity': {'value': '3 MiB', 'source': ['gamegpu-1080ti'], 'status': 'secondary'},
   'shared_by_all': True,
  },
  'shared': {
   'label': 'shared memory',
   'capacity_per_unit': {'value': '96 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'max_per_block': {'value': '48 KiB', 'source': ['cccl-traits'], 'status': 'spec'},
   'bandwidth_per_unit': {
    'value': '128 B/clk',
    'source': ['memory'],
    'status': 'unverified',
    'note': '32 banks x 4 B',
   },
   'l1_capacity_per_unit': {
    'value': '48 KiB',
    'source': ['memory'],
    'status': 'unverified',
    'note': 'L1/tex 48 KB separate from 96 KB shared (unverified)',
   },
  },
 },
 'occupancy': {
  'max_threads_per_unit': 2048,
  'max_warps_per_unit': 64,
  'max_blocks_per_unit': 32,
  'max_threads_per_block': 1024,
  'registers_per_unit': 65536,
  'max_registers_per_thread': 255,
  'source': ['cccl-traits'],
  'status': 'spec',
 },
 'latency': {
  'shared': {
   'value': '23 cycles',
   'at_clock': '1531 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'measured on P4, the same SM',
  },
  'l1': {
   'value': '82 cycles',
   'at_clock': '1531 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'measured on P4, the same SM',
  },
  'l2': {
   'value': '216 cycles',
   'at_clock': '1531 MHz',
   'source': ['jia2018'],
   'status': 'unverified',
   'note': 'measured on P4, the same SM',
  },
 },
 'links': {
  'host': {
   'name': 'PCIe 3 x16',
   'bandwidth_per_direction': {'value': '15.8 GB/s', 'source': ['memory'], 'status': 'unverified'},
  },
 },
 'tdp': {'value': '250 W', 'source': ['toms-nvidia-history'], 'status': 'secondary'},
 'sources': {
  'cccl-traits': 'NVIDIA CCCL cuda::arch_traits: per-compute-capability SM limits (threads, warps, blocks, shared memory, registers). https://github.com/NVIDIA/cccl/blob/004ad1986064aaa82892ed00d0dbda88b90fa6e6/libcudacxx/include/cuda/__device/arch_traits.h',
  'cuda-guide-via': 'CUDA programming guide arithmetic throughput table (columns to cc 7.x): MUFU 16 (6.0), 32 (6.1/6.2), 16 (7.x). https://docs.nvidia.com/cuda/cuda-c-programming-guide/',
  'formula': 'Computed from other facts of the same file; the note says how',
  'gamegpu-1080ti': 'GameGPU on the GeForce GTX 1080 Ti: an SM of GP102 has 128 fp32 lanes, 4 fp64 units, one fp16x2 unit, 96 KB shared memory and 48 KB L1. https://en.gamegpu.com/geforce-gtx-1xxx-series/geforce-gtx-1080-ti',
  'gamersnexus-titanx': 'GamersNexus review of the Titan X (Pascal): table of Pascal and Maxwell cards. https://www.gamersnexus.net/hwreviews/2659-nvidia-gtx-titan-x-pascal-review-and-benchmark',
  'jia2018': 'Jia et al. 2018, Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, Table 3.1, recalled from memory: hits of shared memory, L1, L2 in cycles on P100 24, 82, 234; P4 23, 82, 216; M60 23, 82, 207. https://arxiv.org/abs/1804.06826',
  'memory': 'unverified: from memory',
  'toms-nvidia-history': "Tom's Hardware, History of NVIDIA GPUs: GP102 cards, cores, clocks, memory rates. http://www.tomshardware.com/picturestory/715-history-of-nvidia-gpus.html",
 },
}
