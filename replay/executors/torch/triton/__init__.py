"""The CUDA path: kernels in Triton, and whole steps as CUDA graphs."""
